"""`python -m lab history`: thins the log of a training run to the model's history.json."""

from __future__ import annotations

from typing import Annotated

from lab.measurement import File, Model, about, command
from transformer.storage.description import HISTORY_FILE, read_config
from transformer.training.runs.files import LOG_FILE
from transformer.training.runs.history import write_history

Log = Annotated[File | None, f"log of the training run (default: {LOG_FILE} in --model)"]


@command()
def history(model: Model, log: Log = None) -> None:
    """Thins the log of the training run to the model's history.json, which the page Training draws."""
    read_config(model)
    log = log or model / LOG_FILE
    thinned = write_history(model, log, **about("history", model=model, log=log))
    print(
        f"{thinned.steps:,} steps, {len(thinned.evaluations['step']):,} evaluations. "
        f"Wrote {model / HISTORY_FILE}.",
        flush=True,
    )
