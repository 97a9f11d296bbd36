"""`python -m explorer survey`: writes the files that describe the heads of a model beside it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch

from explorer.lenses.heads.first_heads import kind_totals, measure_heads
from explorer.lenses.heads.shipped import write_survey
from explorer.lenses.heads.statistics import Totals
from explorer.lenses.heads.survey import Line, Surveyor
from explorer.lenses.what_if.controls import mean_outputs
from explorer.lenses.words import samples
from explorer.lenses.words.claims import heads_that_show, shared_heads
from explorer.lenses.words.gold_links import align_gold
from explorer.lenses.words.groups import reading_groups
from explorer.lenses.words.links import read_gold
from transformer.config import AttentionKind
from transformer.exports.maps import save_maps
from transformer.interventions import HeadMeans
from transformer.run import Translation
from transformer.storage.description import EXAMPLES_FILE, HEADS_FILE, SURVEY_FILE, model_digests
from transformer.storage.directory import write_means
from transformer.storage.files import read_json, write_atomically, write_json
from transformer.text.pairs import read_pairs
from transformer.translator import Translator, load_translator

FIRST_FILE = "first.npz"
MOST_PAIRS = 500
"""Pairs that `heads.json` is measured on."""


def survey(
    *, model: Path, data: Path | None = None, alignments: Path | None = None, brief: bool = False
) -> int:
    """Write heads.json, survey.npz, means.safetensors and first.npz beside a model; check examples.json.

    The exit status is 1 if an example claims what no head shows.

    model [DIR]: directory of the model
    data: source<TAB>target lines for heads.json; the bundled sample without it (.gz too)
    alignments: source<TAB>target<TAB>links lines for its alignment errors; the bundled links without it
    brief: leave tokens and sentences out of survey.npz, for a small file
    """
    torch.set_num_threads(1)  # as the app computes, so that the model changes nothing when it is loaded
    translator = load_translator(model, "cpu")
    words = ["python", "-m", "explorer", "survey", "--model", str(model)]
    for option, path in (("--data", data), ("--alignments", alignments)):
        words += [option, str(path)] if path else []
    head: dict[str, Any] = {"model": translator.name, "command": shlex.join(words + ["--brief"] * brief)}
    head |= {"date": date.today().isoformat(), "digests": model_digests(model)}
    for file in _files(model, translator, data, alignments, brief, head):
        print(f"Wrote {model / file}.", flush=True)
    if not (model / EXAMPLES_FILE).is_file():
        return 0
    missing = _examples(model, translator)
    print("\n".join(missing) or f"All examples in {model / EXAMPLES_FILE} hold.", flush=True)
    return int(bool(missing))


def _files(
    directory: Path,
    translator: Translator,
    data: Path | None,
    alignments: Path | None,
    brief: bool,
    head: dict[str, Any],
) -> Iterator[str]:
    sample = samples.sample_of(directory)
    pairs = list(read_pairs(samples.FOLDER / sample.data))
    gold = read_gold(samples.FOLDER / sample.alignments)
    measured = list(read_pairs(data))[:MOST_PAIRS] if data else pairs[:MOST_PAIRS]
    linked = read_gold(alignments) if alignments else gold
    projections = translator.model.output_projection

    def totals() -> Iterator[dict[AttentionKind, Totals]]:
        for pair in measured:
            yield kind_totals(translator.force(pair.source, pair.target), projections)

    files = (Path(data or sample.data).parts[-2:], Path(alignments or sample.alignments).parts[-2:])
    basis = f"patterns: {len(measured)} pairs of {'/'.join(files[0])}, given targets forced"
    basis += f"; aer: {len(linked)} pairs of {'/'.join(files[1])}"
    found = measure_heads(totals(), align_gold(translator, linked))
    write_json(directory / HEADS_FILE, head | {"data": basis} | found)
    yield HEADS_FILE
    lines = [Line(pair.source, pair.target) for pair in pairs]
    surveyor = Surveyor(translator, lines, gold)
    for _ in surveyor.run():
        pass
    write_survey(directory, surveyor.survey(), lines, gold, head, brief)
    yield SURVEY_FILE
    means, read = mean_outputs(translator, [(pair.source, pair.target) for pair in pairs])
    notes = {"data": f"{read} pairs of {sample.data}, given targets forced"}
    notes |= {name: head[name] for name in ("command", "date")}
    write_means(directory, HeadMeans(means, notes))
    yield "means.safetensors"
    if (directory / EXAMPLES_FILE).is_file():
        text = read_json(directory / EXAMPLES_FILE)["examples"][0]["text"]
        run = translator.translate(text, beam_size=1)
        if run.attention is None or not run.audit().passed:
            raise ValueError("The checks of the first run fail, so it is not written.")
        save_maps(run, directory, directory / FIRST_FILE)
        yield FIRST_FILE


def _examples(directory: Path, translator: Translator) -> list[str]:
    """Writes the heads that show what the examples claim; sentences on what no run shows."""
    path = directory / EXAMPLES_FILE
    examples = read_json(path)["examples"]
    runs = [translator.translate(each["text"], beam_size=1) for each in examples]
    mended, missing = with_heads(examples, runs)
    values = {"digests": model_digests(directory), "examples": mended}
    write_atomically(path, (json.dumps(values, indent=1, ensure_ascii=False) + "\n").encode())
    return missing


def with_heads(
    examples: Sequence[dict[str, Any]], runs: Sequence[Translation]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The examples with the heads that show their claims, and sentences on what the runs do not show."""
    claimed = [each["claim"] for each in examples]
    found = [
        heads_that_show(run, claim["target"], claim["source"], claim["least"])
        for run, claim in zip(runs, claimed, strict=True)
    ]
    mended, missing = [], []
    for example, run, best in zip(examples, runs, shared_heads(found), strict=True):
        claim = example["claim"]
        if best is None:
            missing.append(
                f"No head shows that “{claim['target']}” looks at “{claim['source']}” in “{run.text}”: "
                f"correct the example “{example['label']}”."
            )
        else:
            claim = claim | {"layer": best.layer, "head": best.head, "weight": round(best.weight, 2)}
        mended.append({**example, "claim": claim})
        words = [each.text for each in reading_groups(run.target_tokens[:-1])]
        if unknown := [word for word in words if word[0].isalnum() and word not in example["gloss"]]:
            missing.append(f"The example “{example['label']}” has no gloss for {', '.join(unknown)}.")
    return mended, missing
