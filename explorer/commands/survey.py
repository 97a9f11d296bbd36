"""`python -m explorer survey`: writes the files that describe the heads of a model beside it."""

import json
import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch

from explorer.lenses.heads.statistics import kind_sums, measure_heads
from explorer.lenses.heads.survey import Line, write_survey
from explorer.lenses.heads.surveyor import Surveyor
from explorer.lenses.what_if.controls import mean_outputs
from explorer.lenses.words import languages
from explorer.lenses.words.doubt import unsure_below
from explorer.lenses.words.groups import reading_groups
from explorer.lenses.words.linking import align_gold
from explorer.lenses.words.links import read_gold
from explorer.lenses.words.telling import heads_that_show, shared_heads
from transformer.exports.maps import save_maps
from transformer.interventions import HeadMeans
from transformer.run import Translation
from transformer.storage.description import EXAMPLES_FILE, HEADS_FILE, SURVEY_FILE, model_digests
from transformer.storage.directory import write_means
from transformer.storage.files import read_json, write_atomically, write_json
from transformer.text.pairs import SentencePair, read_pairs
from transformer.translator import Translator, load_translator

Facts = dict[str, Any]
"""What a JSON file says, by name."""
FIRST_FILE = "first.npz"
MOST_PAIRS = 500
"""Pairs that `heads.json` is measured on."""


def survey(
    *, model: Path, data: Path | None = None, alignments: Path | None = None, brief: bool = False
) -> int:
    """Write heads.json, survey.npz, means.safetensors and first.npz beside a model; check
    examples.json.

    The exit status is 1 if an example claims what no head shows.

    model [DIR]: directory of the model
    data: source<TAB>target lines for heads.json; the bundled sample without it (.gz too)
    alignments: source<TAB>target<TAB>links lines for its alignment errors; the bundled links
        without it
    brief: leave tokens and sentences out of survey.npz, for a small file
    """
    # as the app computes, so that the model changes nothing when it is loaded
    torch.set_num_threads(1)
    translator = load_translator(model, "cpu")
    head: Facts = {
        "model": translator.name,
        "command": command(model, data, alignments, brief),
        "date": date.today().isoformat(),
        "digests": model_digests(model),
    }
    sample = languages.sample_of(model)
    pairs = [*read_pairs(languages.FOLDER / sample.data)]
    gold = read_gold(languages.FOLDER / sample.alignments)

    facts = heads_of(translator, sample, pairs, data, alignments)
    write_json(model / HEADS_FILE, head | facts)
    wrote(model / HEADS_FILE)

    lines = [Line(pair.source, pair.target) for pair in pairs]
    surveyor = Surveyor(translator, lines, gold)
    deque(surveyor.run(), 0)
    write_survey(model, surveyor.survey(), lines, gold, head, brief=brief)
    wrote(model / SURVEY_FILE)

    means, count = mean_outputs(translator, [(pair.source, pair.target) for pair in pairs])
    notes = {"data": f"{count} pairs of {sample.data}, given targets forced"}
    write_means(model, HeadMeans(means, notes | {name: head[name] for name in ("command", "date")}))
    wrote(model / "means.safetensors")

    if not (model / EXAMPLES_FILE).is_file():
        return 0
    return write_examples(translator, model, head["digests"])


def command(model: Path, data: Path | None, alignments: Path | None, brief: bool) -> str:
    """The command that writes the same files."""
    words = ["python", "-m", "explorer", "survey", "--model", str(model)]
    if data:
        words += ["--data", str(data)]
    if alignments:
        words += ["--alignments", str(alignments)]
    if brief:
        words.append("--brief")
    return shlex.join(words)


def wrote(path: Path) -> None:
    """Says that a file is written."""
    print(f"Wrote {path}.", flush=True)


def heads_of(
    translator: Translator,
    sample: languages.Sample,
    pairs: Sequence[SentencePair],
    data: Path | None,
    alignments: Path | None,
) -> Facts:
    """What `heads.json` says of the heads, over files of one's own or over the sample."""
    forced = [*read_pairs(data)] if data else pairs
    forced = forced[:MOST_PAIRS]
    linked = read_gold(alignments or languages.FOLDER / sample.alignments)
    runs = (translator.force(pair.source, pair.target) for pair in forced)
    sums = (kind_sums(run, translator.model.output_projection) for run in runs)
    facts = measure_heads(sums, align_gold(translator, linked))
    basis = (
        f"patterns: {len(forced)} pairs of {last_parts(data or sample.data)}, given targets "
        f"forced; aer: {len(linked)} pairs of {last_parts(alignments or sample.alignments)}; "
        f"unsure: {len(pairs)} texts of {sample.data}"
    )
    return {"data": basis, "unsure_below": usually_over(translator, pairs)} | facts


def last_parts(path: str | Path) -> str:
    """A file and its folder."""
    return "/".join(Path(path).parts[-2:])


def write_examples(translator: Translator, model: Path, digests: Mapping[str, str]) -> int:
    """Writes the first run, and the examples with the heads that show their claims.

    The exit status is 1 if an example claims what no head shows.
    """
    examples = read_json(model / EXAMPLES_FILE)["examples"]
    runs = [translator.translate(example["text"], beam_size=1) for example in examples]
    if runs[0].attention is None or not runs[0].audit().passed:
        raise ValueError("The checks of the first run fail, so it is not written.")
    save_maps(runs[0], model, model / FIRST_FILE)
    wrote(model / FIRST_FILE)
    mended, missing = with_heads(examples, runs)
    content = json.dumps({"digests": digests, "examples": mended}, indent=1, ensure_ascii=False)
    write_atomically(model / EXAMPLES_FILE, f"{content}\n".encode())
    print("\n".join(missing) or f"All examples in {model / EXAMPLES_FILE} hold.", flush=True)
    return int(bool(missing))


def usually_over(translator: Translator, pairs: Sequence[SentencePair]) -> float:
    """The mean log-probability of a token that four of five greedy outputs reach, in nats."""
    runs = (translator.translate(pair.source, beam_size=1, capture=False) for pair in pairs)
    return round(unsure_below(run.log_probs for run in runs), 4)


def with_heads(
    examples: Sequence[Facts], runs: Sequence[Translation]
) -> tuple[list[Facts], list[str]]:
    """The examples with the heads that show their claims, and sentences on what no run shows."""
    claims = [example["claim"] for example in examples]
    showing = [
        heads_that_show(run, claim["target"], claim["source"], claim["least"])
        for run, claim in zip(runs, claims, strict=True)
    ]
    mended = []
    missing = []
    heads = shared_heads(showing)
    for example, run, weights, best in zip(examples, runs, showing, heads, strict=True):
        claim = example["claim"]
        if best is None:
            missing.append(
                f"No head shows that “{claim['target']}” looks at “{claim['source']}” in "
                f"“{run.text}”: correct the example “{example['label']}”."
            )
        else:
            claim = claim | {"layer": best[0], "head": best[1], "weight": round(weights[best], 2)}
        mended.append({**example, "claim": claim})
        words = [group.text for group in reading_groups(run.target_tokens[:-1])]
        if unknown := [
            word for word in words if word[0].isalnum() and word not in example["gloss"]
        ]:
            missing.append(
                f"The example “{example['label']}” has no gloss for {', '.join(unknown)}."
            )
    return mended, missing
