"""`python -m lab language`: what a language model has learned, as `language.json`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import torch

from lab.language import inducing, words
from lab.language.embeddings import unit_rows
from lab.measurement import File, Folder, Json, Model, measurement, one_thread
from lab.study import Cell, Chart, Study, chart, curves, interval
from transformer.runs.bootstrap import Floats
from transformer.runs.language.generator import TextGenerator, load_language_model
from transformer.storage.description import LANGUAGE_FILE
from transformer.storage.eight_bits import stored_as
from transformer.text.numbers import number
from transformer.text.pairs import DataError, read_texts
from transformer.training.runs.snapshots import load_snapshot, snapshot_file, snapshot_steps

ABLATED_ON = 500
SAME = 0.95
"""Mean cosine of the embeddings of a model and of the last snapshot of its run, at least."""
PARTS = {
    "induction": ("heldout",),
    "words": ("text", "snapshots"),
}
"""The parts of the file, in the order of measuring, and the options whose files each reads."""


def induction(found: Json) -> Study:
    """Heads that find what followed the same token before, and what the model loses without them."""
    model, found = found["model"], found["induction"]
    scores, first, gain = found["scores"], found["ablations"][0], found["copying"]["gain"]
    (layer, head), copies, text = first["heads"][0], first["copies"], first["text"]
    share, even = 100 * scores["induction"][layer][head], 100 * scores["even_induction"]
    own = [100 * each["copies"]["cost"]["value"] / gain["value"] for each in found["ablations"]]
    return Study(
        topic="Language model",
        question=f"Does “{model}” have induction heads, and does it need them?",
        finding=f"Head {head + 1} of layer {layer + 1} gives {share:.0f} % of its weight to what followed "
        f"the same piece before; without it, copying loses {own[0]:.0f} % of what the repetition saves.",
        parts=[
            f"On {found['sequences']} sequences of {found['length']} random pieces, said twice, only the "
            "repetition tells which piece comes next. An induction head looks from a piece back to what "
            f"followed it the first time, and can copy that; weight spread evenly would give {even:.1f} %. "
            "One way to it is a head in an earlier layer that looks at the previous token. The second time, "
            f"a piece costs {gain['value']:.2f} nats less than the first time ({gain['low']:.2f} to "
            f"{gain['high']:.2f}).",
            *(
                chart(
                    "grid",
                    f"Mean weight on {what}, %",
                    ("layer", "head", "weight, %"),
                    [
                        (f"layer {i}", str(j), 100 * value)
                        for i, row in enumerate(scores[name], start=1)
                        for j, value in enumerate(row, start=1)
                    ],
                )
                for name, what in (
                    ("induction", "what followed the same piece"),
                    ("previous", "the previous token"),
                )
            ),
            "A head that is switched off gives zeros. Any head may cost something, so the same number of "
            "random other heads of the same layers is switched off too. Without the best head the second "
            f"copy costs {copies['cost']['value']:.2f} nats more; {copies['as_large']} of "
            f"{len(copies['controls'])} other heads cost as much. On held-out text losing it costs "
            f"{number(text['cost']['value'], '.3f')}"
            + (f", another head {number(text['control']['value'], '.3f')}" if text["control"] else "")
            + ". Switching a head off shows whether the model needs it, not that it needs the pattern.",
            *(
                _ablations(found, data, what)
                for data, what in (("copies", "on the second copy"), ("text", "on held-out text"))
            ),
            chart(
                "bars",
                "Share of what the repetition saves that is lost without the best heads",
                ("lost", "heads", "%"),
                [("lost", _without(each), cost) for each, cost in zip(found["ablations"], own, strict=True)],
            ),
        ],
        method="95 % intervals, over sequences on copies and over texts on held-out text. Every second "
        "sentence of the training text was joined to others with which it shares a rare word, so induction "
        "pays there.",
        sources="Olsson et al. 2022; Elhage et al. 2021.",
    )


def _without(each: Json) -> str:
    count = len(each["heads"])
    return "without the best head" if count == 1 else f"without the {count} best"


def _ablations(found: Json, data: str, what: str) -> Chart:
    """What losing the best heads costs, beside a control."""
    cells = {_without(each): each[data] for each in found["ablations"]}
    rows: list[Sequence[Cell]] = [
        ("heads with the highest scores", name, *interval(each["cost"])) for name, each in cells.items()
    ]
    rows += [
        ("random other heads of their layers", name, *interval(each["control"]))
        for name, each in cells.items()
        if each["control"]
    ]
    return chart(
        "dots",
        f"Rise of the loss {what}, nats a piece",
        ("switched off", "heads", "nats", "low", "high"),
        rows,
    )


def company(found: Json) -> Study:
    """Neighbours of words by embedding, beside those by co-occurrence."""
    model, found = found["model"], found["words"]
    steps, agree, near = found["steps"], found["agree"], len(found["company"][0])
    chance = 100 * near / (found["candidates"] - 1)
    shown = [found["groups"].index(group) for group in dict.fromkeys(found["groups"])]

    def names(ids: Sequence[int]) -> str:
        return ", ".join(found["names"][i] for i in ids[:_NAMED])

    return Study(
        topic="Language model",
        question=f"Does “{model}” know words by the company they keep?",
        finding=f"Before training {100 * agree[0]:.1f} % of a word's {near} nearest neighbours are also its "
        f"neighbours by co-occurrence, at the end {100 * agree[-1]:.0f} %.",
        parts=[
            "Words in similar contexts have similar meanings: that is the *distributional hypothesis*. The "
            "model has seen nothing but contexts. For each word, the share of its nearest neighbours by "
            "embedding that are also among its nearest by co-occurrence, counted in the training text; by "
            f"chance, {chance:.1f} %.",
            curves(
                f"Shared neighbours, mean over {len(found['words'])} words",
                ("lists", "step of training", "shared, %"),
                {
                    "embedding and co-occurrence": [
                        (max(step, 1), 100 * each) for step, each in zip(steps, agree, strict=True)
                    ],
                    "by chance": [(max(step, 1), chance) for step in steps],
                },
                "x",
            ),
            Chart(
                "table",
                "Nearest words by embedding, before training and after it, and by co-occurrence",
                "A table of one word of each group with its nearest words in three ways.",
                ("word", "group", "before training", f"after step {steps[-1]:,}", "by co-occurrence"),
                [
                    (
                        found["words"][i],
                        found["groups"][i],
                        *(names(found["neighbours"][at][i]) for at in (0, -1)),
                        names(found["company"][i]),
                    )
                    for i in shown
                ],
            ),
        ],
        method=f"Nearest of {found['candidates']:,} words by cosine. Co-occurrence: PPMI of the pieces at "
        f"most {found['window']} places away. The snapshots of the run are stored in {found['stored']}.",
        sources="Harris 1954; Firth 1957; Levy & Goldberg 2014.",
    )


_NAMED = 5
"""Neighbours that a table names."""


@measurement(LANGUAGE_FILE, parts=PARTS, dated=True, studies={"induction": induction, "words": company})
def language(
    model: Model,
    snapshots: Annotated[Folder | None, "directory of its training run"] = None,
    text: Annotated[tuple[File, ...], "texts on which co-occurrences are counted"] = (),
    heldout: Annotated[File | None, "texts on which it is measured what losing heads costs"] = None,
    least: Annotated[int, "how often a word must occur to be on the map"] = words.LEAST,
    only: Sequence[str] = (),
) -> Json:
    """Measures what a language model has learned: induction, words."""
    names = only or list(PARTS)
    files = {"text": text, "heldout": heldout, "snapshots": snapshots}
    opened = dict.fromkeys(option for name in names for option in PARTS[name])
    if missing := [f"--{option}" for option in opened if not files[option]]:
        raise DataError(f"Give {', '.join(missing)} too: {', '.join(names)} cannot be measured without.")
    generator = load_language_model(model)
    parts: dict[str, Callable[[], Json]] = {
        "induction": lambda: inducing.measure_induction(generator, _texts(Path(heldout or ""))[:ABLATED_ON]),
        "words": lambda: _words(generator, Path(snapshots or ""), text, least),
    }
    return {name: one_thread()(parts[name]) for name in PARTS}


def _texts(path: Path) -> list[str]:
    """The texts of a file; DataError if there are none."""
    found = list(read_texts(path))
    if not found:
        raise DataError(f"{path}: there is no text in this file.")
    return found


def _words(generator: TextGenerator, run: Path, files: Sequence[Path], least: int) -> Json:
    """The map of words over a run, beside co-occurrences in files of texts."""
    counted = [generator.ids(text) for path in files for text in read_texts(path)]
    found = words.measure_words(generator.tokenizer, _tables(generator, run), counted, least)
    return found | {"stored": stored_as(snapshot_file(run, snapshot_steps(run)[-1]))}


def _tables(generator: TextGenerator, directory: Path) -> list[tuple[int, Floats]]:
    """Steps and embeddings of a run; the model's own stand for the last: its weights may be averages."""
    steps = snapshot_steps(directory)
    if not steps:
        raise DataError(f"{directory} has no snapshots; train with --snapshots.")
    tables = [(step, _table(load_snapshot(directory, step).model)) for step in steps]
    own, (step, last) = _table(generator.model), tables[-1]
    if own.shape != last.shape or (unit_rows(own) * unit_rows(last)).sum(1).mean() < SAME:
        raise DataError(f"The last snapshot of {directory}, of step {step:,}, is not this model.")
    return [*tables[:-1], (step, own)]


def _table(model: torch.nn.Module) -> Floats:
    """(vocabulary, d_model) embeddings."""
    found: Floats = model.get_parameter("embedding.weight").detach().double().numpy()
    return found
