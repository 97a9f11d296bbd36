"""`python -m transformer compress`: a model in 8 bits."""

import sys
from pathlib import Path

from transformer.hub.sources import open_model
from transformer.storage.description import WEIGHTS_FILE
from transformer.storage.directory import save_checkpoint, step_of
from transformer.storage.eight_bits import packed
from transformer.storage.files import CheckpointError
from transformer.text.tokenizer import Tokenizer


def compress(*, model: str, output: Path) -> int:
    """Store a model in 8 bits.

    What was measured on the model has to be measured on it again.

    model [MODEL]: a directory, or a Hub name
    output [DIR]: the new directory
    """
    check_new(output)
    _, checkpoint = open_model(model)
    if not isinstance(checkpoint.tokenizer, Tokenizer):
        raise CheckpointError(f"{model} has no vocabulary that this package can write.")
    save_checkpoint(
        output,
        checkpoint.config,
        checkpoint.model.state_dict(),
        checkpoint.tokenizer,
        card=checkpoint.card,
        step=step_of(Path(model)) if (Path(model) / WEIGHTS_FILE).exists() else None,
        stored=packed,
    )
    nbytes = sum(path.stat().st_size for path in output.rglob("*"))
    print(f"{nbytes:,} bytes in {output}.", file=sys.stderr)
    return 0


def check_new(output: Path) -> None:
    """CheckpointError if a directory to write holds anything."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise CheckpointError(
            f"{output} already exists and is not an empty directory; choose a new one."
        )
