"""`python -m explorer survey`: writes the files that describe the heads of a model beside it."""

import json
import shlex
from collections import deque
from collections.abc import Sequence
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
    torch.set_num_threads(
        1
    )  # as the app computes, so that the model changes nothing when it is loaded
    translator = load_translator(model, "cpu")
    sample = languages.sample_of(model)
    options = (("--data", data), ("--alignments", alignments))
    typed = [word for option, path in options if path for word in (option, str(path))]
    words = [
        "python",
        "-m",
        "explorer",
        "survey",
        "--model",
        str(model),
        *typed,
        *["--brief"] * brief,
    ]
    head: dict[str, Any] = {"model": translator.name, "command": shlex.join(words)}
    head |= {"date": date.today().isoformat(), "digests": model_digests(model)}

    def wrote(file: str) -> None:
        print(f"Wrote {model / file}.", flush=True)

    pairs = [*read_pairs(languages.FOLDER / sample.data)]
    gold = read_gold(languages.FOLDER / sample.alignments)
    read = ([*read_pairs(data)] if data else pairs)[:MOST_PAIRS]
    linked = read_gold(alignments) if alignments else gold
    runs = (translator.force(pair.source, pair.target) for pair in read)
    sums = (kind_sums(run, translator.model.output_projection) for run in runs)
    found = measure_heads(sums, align_gold(translator, linked))
    files = (data or sample.data, alignments or sample.alignments)
    of_pairs, of_links = ("/".join(Path(path).parts[-2:]) for path in files)
    basis = f"patterns: {len(read)} pairs of {of_pairs}, given targets forced"
    basis += (
        f"; aer: {len(linked)} pairs of {of_links}; unsure: {len(pairs)} texts of {sample.data}"
    )
    usual = {"unsure_below": usually_over(translator, pairs)}
    write_json(model / HEADS_FILE, head | {"data": basis} | usual | found)
    wrote(HEADS_FILE)
    lines = [Line(pair.source, pair.target) for pair in pairs]
    surveyor = Surveyor(translator, lines, gold)
    deque(surveyor.run(), 0)
    write_survey(model, surveyor.survey(), lines, gold, head, brief)
    wrote(SURVEY_FILE)
    means, count = mean_outputs(translator, [(pair.source, pair.target) for pair in pairs])
    notes = {"data": f"{count} pairs of {sample.data}, given targets forced"}
    write_means(model, HeadMeans(means, notes | {name: head[name] for name in ("command", "date")}))
    wrote("means.safetensors")
    if not (model / EXAMPLES_FILE).is_file():
        return 0
    examples = read_json(model / EXAMPLES_FILE)["examples"]
    shown = [translator.translate(example["text"], beam_size=1) for example in examples]
    if shown[0].attention is None or not shown[0].audit().passed:
        raise ValueError("The checks of the first run fail, so it is not written.")
    save_maps(shown[0], model, model / FIRST_FILE)
    wrote(FIRST_FILE)
    mended, missing = with_heads(examples, shown)
    content = json.dumps(
        {"digests": head["digests"], "examples": mended}, indent=1, ensure_ascii=False
    )
    write_atomically(model / EXAMPLES_FILE, f"{content}\n".encode())
    print("\n".join(missing) or f"All examples in {model / EXAMPLES_FILE} hold.", flush=True)
    return int(bool(missing))


def usually_over(translator: Translator, pairs: Sequence[SentencePair]) -> float:
    """The mean log-probability of a token that four of five greedy outputs reach, in nats."""
    runs = (translator.translate(pair.source, beam_size=1, capture=False) for pair in pairs)
    return round(unsure_below(run.log_probs for run in runs), 4)


def with_heads(
    examples: Sequence[dict[str, Any]], runs: Sequence[Translation]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The examples with the heads that show their claims, and sentences on what the runs do not
    show."""
    asked = ((run, each["claim"]) for each, run in zip(examples, runs, strict=True))
    found = [
        heads_that_show(run, claim["target"], claim["source"], claim["least"])
        for run, claim in asked
    ]
    mended, missing = [], []
    for example, run, weights, best in zip(examples, runs, found, shared_heads(found), strict=True):
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
