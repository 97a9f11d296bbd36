"""How many wrong and right translations the line of doubt names, and how often a beam betters
them."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Annotated, NamedTuple

import torch

from benchmarks.timing import ASSETS
from explorer.app.server.doubts import BEAM_SIZE, better_than
from explorer.lenses.words import languages
from explorer.lenses.words.doubt import mean_log_prob
from transformer import Translator, load_translator
from transformer.text.pairs import read_pairs


class Judged(NamedTuple):
    """A translation, and what its references and the line of doubt say of it."""

    likeness: float  # chrF against the reference that is most alike
    is_right: bool  # whether it is one of the references, but for case and punctuation
    is_unsure: bool
    is_bettered: bool


def doubt(
    *,
    model: Annotated[Path, "DIR", "the model, with its heads.json"] = ASSETS / "models" / "en-de",
    data: Annotated[
        Path | None, "FILE", "source<TAB>target lines; the bundled sample without it"
    ] = None,
    count: Annotated[int, "N", "translations of each sort"] = 100,
) -> int:
    """Counts what the line of doubt names: of right translations, and of those least like their
    references.

    Right is what equals a reference but for case and punctuation, spread evenly over the file.
    """
    torch.set_num_threads(1)
    translator = load_translator(model, "cpu")
    path = data or languages.FOLDER / languages.sample_of(model).data
    references = defaultdict[str, list[str]](list)
    for pair in read_pairs(path):
        references[pair.source].append(pair.target)
    judged = [_judge(translator, source, known) for source, known in references.items()]
    every_right = [text for text in judged if text.is_right]
    spread = [i * len(every_right) // count for i in range(min(count, len(every_right)))]
    every_wrong = [text for text in judged if not text.is_right]
    wrong = sorted(every_wrong, key=lambda text: text.likeness)[:count]
    print(f"{model.name}, {len(judged)} sentences of {path.name}, {len(every_right)} of them right")
    for name, sort in (("right", [every_right[i] for i in spread]), ("wrong", wrong)):
        unsure = sum(text.is_unsure for text in sort)
        bettered = sum(text.is_bettered for text in sort)
        either = sum(text.is_unsure or text.is_bettered for text in sort)
        print(
            f"{name}: {len(sort)}; unsure {unsure}, bettered by a beam {bettered}, either {either}"
        )
    return 0


def _judge(translator: Translator, source: str, references: list[str]) -> Judged:
    from sacrebleu.metrics.chrf import CHRF

    greedy = translator.translate(source, beam_size=1, capture=False)
    best = translator.translate(source, beam_size=BEAM_SIZE, capture=False)
    likeness = max(
        CHRF().sentence_score(greedy.text, [reference]).score for reference in references
    )
    is_right = _bare(greedy.text) in map(_bare, references)
    limit = (translator.heads or {})["unsure_below"]
    is_unsure = mean_log_prob(greedy.log_probs) < limit
    return Judged(
        likeness, is_right, is_unsure, better_than(translator.rules, best, greedy).differs
    )


def _bare(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
