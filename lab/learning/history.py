"""`python -m lab history`: thins the log of a training run to the model's history.json."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from typing import Any

from transformer.storage.description import HISTORY_FILE, read_config
from transformer.training.runs.files import LOG_FILE
from transformer.training.runs.history import write_history


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "thin the log of the training run to the model's history.json, which the page Training draws"
    parser: argparse.ArgumentParser = commands.add_parser("history", help=text, description=text)
    parser.add_argument("--model", required=True, type=Path, metavar="DIR", help="model directory")
    add_log(parser)
    parser.set_defaults(run=write)


def add_log(parser: argparse.ArgumentParser) -> None:
    """Declares `--log`."""
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help=f"log of the training run (default: DIR/{LOG_FILE})"
    )


def log_of(arguments: argparse.Namespace) -> Path:
    """The log that the arguments name."""
    given: Path | None = arguments.log
    return arguments.model / LOG_FILE if given is None else given


def write(arguments: argparse.Namespace) -> int:
    """`history`: writes `history.json` and says how much of the log it holds."""
    directory, log = arguments.model, log_of(arguments)
    read_config(directory)
    command = f"python -m lab history --model {directory} --log {log}"
    history = write_history(directory, log, command, date.today().isoformat())
    print(
        f"{history.steps:,} steps, {len(history.evaluations['step']):,} evaluations. "
        f"Wrote {directory / HISTORY_FILE}.",
        flush=True,
    )
    return 0
