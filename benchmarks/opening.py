"""Counts on which sort of word the app opens the bundled sample, and how many words have a right gloss.

    python benchmarks/opening.py [--model assets/models/en-de] [--sentences 500]

For each sentence, the model translates greedily, and the head of cross-attention that opens first chooses
the step, as on the home page. The glosses are compared with the links made by hand in the sample
(`alignments.tsv`), with the given targets forced.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from explorer.lenses.words.alignment import Aligner  # noqa: E402
from explorer.lenses.words.function_words import TARGET_LANGUAGES  # noqa: E402
from explorer.lenses.words.groups import reading_groups  # noqa: E402
from explorer.lenses.words.links import GoldPair, read_gold  # noqa: E402
from explorer.lenses.words.telling import links, sort_of, telling_step, text_words  # noqa: E402
from transformer import Translation, Translator, load_translator  # noqa: E402
from transformer.text.pairs import read_pairs  # noqa: E402
from transformer.text.words import word_groups  # noqa: E402

SAMPLE = ROOT / "assets" / "sample"
SORTS = "special token", "punctuation", "function word", "content word"


def opened(run: Translation, head: Aligner, best: Aligner) -> tuple[int, int]:
    """The sort of the word that opens, and the best sort there is."""
    step = telling_step(head.weights(run), run.source_tokens, run.target_tokens, best.weights(run))
    sorts = {each.start: sort_of(each.text, TARGET_LANGUAGES) for each in reading_groups(run.target_tokens)}
    return sorts[step], max(sorts.values())


def right_glosses(run: Translation, aligner: Aligner, gold: GoldPair) -> tuple[int, int, int]:
    """The glosses of a forced target that a link made by hand confirms, all glosses, and all words."""
    words = text_words(run.target_tokens)
    found = links(aligner.weights(run), run.source_tokens, words)
    source, target = (_numbers(tokens) for tokens in (run.source_tokens, run.target_tokens))
    right = sum((source[each.source.start], target[each.target.start]) in gold.possible for each in found)
    return right, len(found), len(words)


def _numbers(tokens: tuple[str, ...]) -> dict[int, int]:
    """The word (from 0) that each piece belongs to."""
    return {i: n for n, group in enumerate(word_groups(tokens)) for i in group.indices}


def main() -> None:
    """Prints both counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT / "assets" / "models" / "en-de")
    parser.add_argument("--sentences", type=int, default=500)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    translator: Translator = load_translator(asked.model)
    assert translator.heads is not None
    head = Aligner((tuple(translator.heads["default"]["cross"]),), "predicted")
    found = translator.heads["aligner"]
    best = Aligner(tuple(map(tuple, found["heads"])), found["rows"])
    pairs = read_pairs(SAMPLE / "tatoeba-en-de.tsv.gz")[: asked.sentences]
    sorts = [opened(translator.translate(pair.source, beam_size=1), head, best) for pair in pairs]
    counts = Counter(sort for sort, _ in sorts)
    print(
        f"{len(pairs)} sentences open on: " + ", ".join(f"{SORTS[s]} {n}" for s, n in sorted(counts.items()))
    )
    print(f"on a lower sort than the translation has: {sum(sort < best for sort, best in sorts)}")
    gold = read_gold(SAMPLE / "alignments.tsv")
    forced = [translator.force(" ".join(each.source), " ".join(each.target)) for each in gold]
    for name, aligner in (("head that opens first", head), ("best aligner", best)):
        totals = [right_glosses(run, aligner, each) for run, each in zip(forced, gold, strict=True)]
        right, given, words = (sum(column) for column in zip(*totals, strict=True))
        print(
            f"{name}: {given / words:.0%} of {words} words have a gloss, "
            f"{right / given:.0%} of these are right"
        )


if __name__ == "__main__":
    main()
