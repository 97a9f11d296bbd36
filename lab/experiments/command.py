"""`python -m lab experiments`: what a model does when it is changed."""

from __future__ import annotations

from dataclasses import asdict

from lab.experiments.answers import answers
from lab.experiments.questions import EXPERIMENTS
from lab.measurement import Json, Subject, measurement, report
from transformer.storage.description import EXPERIMENTS_FILE, HEADS_FILE, read_heads


@measurement(EXPERIMENTS_FILE)
def experiments(model: Subject) -> Json:
    """Puts a model to the ready experiments that it can read, which the page What if shows."""
    heads = read_heads(model.directory)
    if heads is None:
        raise ValueError(
            f"There is no {model.directory / HEADS_FILE}, which says where the experiments look."
        )
    found: dict[str, list[Json]] = {}
    for each in EXPERIMENTS:
        try:
            found[each.name] = [asdict(answer) for answer in answers(model.translator, each, heads)]
        except ValueError as error:
            report(f"{each.name}: left out. {error}")
    return {"experiments": found}
