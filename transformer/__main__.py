"""The command line: `python -m transformer COMMAND`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        The exit status: 0 for success, 2 for bad input (one sentence on standard error), 130 if interrupted.
    """
    try:
        arguments = _parser().parse_args(argv)
        return int(arguments.run(arguments))
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(_sentence(error), file=sys.stderr)
        return 2


def _sentence(error: Exception) -> str:
    """The message of an error; the operating system's errors without their number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.strerror}." if error.filename is None else f"{error.filename}: {error.strerror}."


class _Parser(argparse.ArgumentParser):
    """A parser that reports an error in one sentence, without the list of options."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; --help lists the options.\n")


def _parser() -> argparse.ArgumentParser:
    """The parser of all commands. They are imported only here: that takes seconds, and Ctrl-C may come."""
    from transformer.commands import (
        attention,
        card,
        familiarity,
        heads,
        hub,
        positions,
        remake,
        scores,
        showcase,
        train,
        use,
        what_if,
    )
    from transformer.commands.language import pretraining, study, text
    from transformer.commands.language import train as train_lm
    from transformer.commands.language import use as use_lm
    from transformer.commands.recurrent import compare, hard_attention
    from transformer.commands.training import adam, birth, cost, distil, history, links

    parser = _Parser(prog="python -m transformer", description=__doc__)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    training = subparsers.add_parser("train", help="train a model on parallel text")
    train.add_arguments(training)
    training.set_defaults(run=train.run)
    reading = subparsers.add_parser("train-lm", help="train a causal language model on text")
    train_lm.add_arguments(reading)
    reading.set_defaults(run=train_lm.run)
    distil.add_command(subparsers)
    use.add_commands(subparsers)
    attention.add_command(subparsers)
    heads.add_commands(subparsers)
    what_if.add_commands(subparsers)
    familiarity.add_command(subparsers)
    scores.add_command(subparsers)
    history.add_command(subparsers)
    adam.add_command(subparsers)
    card.add_command(subparsers)
    showcase.add_commands(subparsers)
    remake.add_command(subparsers)
    positions.add_command(subparsers)
    compare.add_command(subparsers)
    hard_attention.add_command(subparsers)
    links.add_command(subparsers)
    text.add_command(subparsers)
    use_lm.add_commands(subparsers)
    study.add_command(subparsers)
    pretraining.add_command(subparsers)
    birth.add_command(subparsers)
    cost.add_command(subparsers)
    hub.add_commands(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
