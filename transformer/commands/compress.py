"""`python -m transformer compress`: a model in 8 bits, without what another has too."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.commands.arguments import command, option
from transformer.hub.sources import open_model
from transformer.storage.description import WEIGHTS_FILE
from transformer.storage.directory import Checkpoint, save_checkpoint, share, step_of
from transformer.storage.eight_bits import packed
from transformer.storage.files import CheckpointError
from transformer.text.vocabulary import Tokenizer


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    parser = command(commands, "compress", run, "store a model in 8 bits")
    option(parser, "--model", str, "MODEL", "a directory, or a Hub name", required=True)
    option(parser, "--output", Path, "DIR", "the new directory", required=True)
    text = "a model beside the new directory, already in 8 bits; what both have is not stored twice"
    option(parser, "--share", Path, "DIR", text)


def run(arguments: argparse.Namespace) -> int:
    """Writes the new directory; what was measured on the model has to be measured on it again."""
    output: Path = arguments.output
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise CheckpointError(f"{output} already exists and is not an empty directory; choose a new one.")
    _, found = open_model(arguments.model)
    if not isinstance(found.tokenizer, Tokenizer):
        raise CheckpointError(f"{arguments.model} has no vocabulary that this package can write.")
    state = found.model.state_dict()
    if arguments.share is not None:
        state |= _alike(found, open_model(arguments.share)[1])
    step = step_of(Path(arguments.model)) if (Path(arguments.model) / WEIGHTS_FILE).exists() else None
    save_checkpoint(output, found.config, state, found.tokenizer, card=found.card, step=step, stored=packed)
    shared = share(output, arguments.share) if arguments.share is not None else []
    nbytes = sum(path.stat().st_size for path in output.rglob("*"))
    print(f"{nbytes:,} bytes in {output}; {len(shared)} tensors are another model's.", file=sys.stderr)
    return 0


def _alike(found: Checkpoint, other: Checkpoint) -> dict[str, Tensor]:
    """The other model's weights where this one's are theirs, rounded to float16."""
    own, lent = found.model.state_dict(), other.model.state_dict()
    both = own.keys() & lent.keys()
    return {name: lent[name] for name in both if torch.equal(own[name].half(), lent[name].half())}
