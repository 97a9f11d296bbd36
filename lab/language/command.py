"""`python -m lab language`: what a language model has learned, as `language.json`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import torch

from lab.language import inducing, words
from lab.language.embeddings import unit_rows
from lab.measurement import File, Folder, Json, Model, measurement, one_thread
from transformer.runs.bootstrap import Floats
from transformer.runs.language.generator import TextGenerator, load_language_model
from transformer.storage.description import LANGUAGE_FILE
from transformer.storage.eight_bits import stored_as
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


@measurement(LANGUAGE_FILE, parts=PARTS, dated=True)
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
