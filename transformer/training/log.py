"""The log of a training run: a step is a line of JSON."""

import json
from dataclasses import asdict
from pathlib import Path

from transformer.storage.files import check_values
from transformer.storage.typed import typed
from transformer.text.pairs import DataError, read_lines
from transformer.training.trainer import TrainingStep


def log_line(step: TrainingStep) -> str:
    """A step as a line of JSON; missing measurements are left out."""
    rounded = {
        "loss": round(step.loss, 5),
        "learning_rate": short(step.learning_rate),
        "gradient_norm": round(step.gradient_norm, 4),
        "seconds": round(step.seconds, 4),
        "gflops": round(step.flops / 1e9, 2),
        "flops": None,
    }
    return json.dumps(
        {name: value for name, value in (asdict(step) | rounded).items() if value is not None}
    )


def read_step(line: str | bytes) -> TrainingStep | None:
    """The step of a line of a log; None if it is none."""
    try:
        values = json.loads(line)
        check_values(values)
        step = typed(TrainingStep, values)
    except (ValueError, RecursionError):
        return None
    return step if step.step > 0 else None


def read_log(
    path: Path,  # a `log.jsonl`
    last: int | None = None,  # leaves out later steps
) -> list[TrainingStep]:
    """The steps of a run's log in order, without a half-written last line; DataError if it is
    none."""
    log = list[TrainingStep]()
    lines = list(read_lines(path))
    for number, line in lines:
        step = read_step(line)
        if step is None and number == len(lines):
            break
        if step is None or (log and step.step <= log[-1].step):
            raise DataError(f"{path}:{number}: this is not a line of a training log.")
        log.append(step)
    log = [step for step in log if last is None or step.step <= last]
    if not log:
        raise DataError(f"{path} logs no step of this model.")
    return log


def short(value: float | None) -> float | None:
    """A number with six digits."""
    if value is None or isinstance(value, int):
        return value
    return float(f"{value:.6g}")
