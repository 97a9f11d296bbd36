"""The command line: `python -m transformer COMMAND`."""

import sys
from collections.abc import Sequence

from transformer.commands.program import Commands, run_program


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    return run_program("python -m transformer", __doc__, _commands, argv)


def _commands() -> Commands:
    from transformer.commands.attention import attention
    from transformer.commands.compress import compress
    from transformer.commands.evaluate import evaluate
    from transformer.commands.fill import fill
    from transformer.commands.generate import generate, perplexity
    from transformer.commands.listing import models
    from transformer.commands.pull import pull
    from transformer.commands.score import score
    from transformer.commands.train import train
    from transformer.commands.train_masked import train_masked
    from transformer.commands.translate import translate

    commands = (
        train,
        train_masked,
        compress,
        attention,
        score,
        pull,
        models,
        translate,
        evaluate,
        generate,
        fill,
        perplexity,
    )
    return {command.__name__.replace("_", "-"): command for command in commands}


if __name__ == "__main__":
    sys.exit(main())
