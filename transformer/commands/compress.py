"""`python -m transformer compress`: a model in 8 bits."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from transformer.commands.arguments import command, option
from transformer.hub.sources import open_model
from transformer.storage.description import WEIGHTS_FILE
from transformer.storage.directory import save_checkpoint, step_of
from transformer.storage.eight_bits import packed
from transformer.storage.files import CheckpointError
from transformer.text.tokenizer import Tokenizer


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    parser = command(commands, "compress", run, "store a model in 8 bits")
    option(parser, "--model", str, "MODEL", "a directory, or a Hub name", required=True)
    option(parser, "--output", Path, "DIR", "the new directory", required=True)


def run(arguments: argparse.Namespace) -> int:
    """Writes the new directory; what was measured on the model has to be measured on it again."""
    output: Path = arguments.output
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise CheckpointError(f"{output} already exists and is not an empty directory; choose a new one.")
    _, found = open_model(arguments.model)
    if not isinstance(found.tokenizer, Tokenizer):
        raise CheckpointError(f"{arguments.model} has no vocabulary that this package can write.")
    state = found.model.state_dict()
    step = step_of(Path(arguments.model)) if (Path(arguments.model) / WEIGHTS_FILE).exists() else None
    save_checkpoint(output, found.config, state, found.tokenizer, card=found.card, step=step, stored=packed)
    nbytes = sum(path.stat().st_size for path in output.rglob("*"))
    print(f"{nbytes:,} bytes in {output}.", file=sys.stderr)
    return 0
