"""`python -m lab backups` and `experiments`: what a model does when it is changed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from lab.backups.backup_heads import backup_heads
from lab.backups.pair_effects import pair_effects, to_json
from lab.experiments.answers import answers
from lab.experiments.questions import EXPERIMENTS
from lab.measurement import Json, Pairs, Subject, measurement, report
from transformer.commands.arguments import shown
from transformer.storage.description import BACKUPS_FILE, EXPERIMENTS_FILE, HEADS_FILE, read_heads
from transformer.text.pairs import read_pairs


@measurement(BACKUPS_FILE)
def backups(
    model: Subject,
    data: Annotated[Pairs, "source<TAB>target lines; sources are read"],
    sentences: Annotated[int, "use the first N pairs of --data"] = 60,
) -> Json:
    """Ablates all heads of a kind in pairs: which head takes over from which."""
    texts = [pair.source for pair in read_pairs(data)[:sentences]]
    by = "zero" if model.translator.means is None else "mean"
    return {
        "data": f"the model's own translations of {len(texts)} sentences of {shown(data)}",
        "kinds": {
            str(kind): to_json(pair_effects([*backup_heads(model.translator, texts, kind, by)][-1]))
            for kind in model.translator.config.sites
        },
    }


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
