"""A program of several commands: its parser, its exit status, its errors in one sentence. No PyTorch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one sentence, without the list of options."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; --help lists the options.\n")


def run_program(
    # makes the parser of all commands; they are imported only then: that takes seconds, and Ctrl-C may come
    parser: Callable[[], argparse.ArgumentParser],
    argv: Sequence[str] | None = None,  # the words after the program's name; None for those of the process
) -> int:
    """Runs one command; the exit status: 0, 1 if some lines were left out, 2 for bad input, 130 after Ctrl-C.

    Errors are one sentence on standard error. What is written is UTF-8, whatever the locale.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        arguments = parser().parse_args(argv)
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
    except RuntimeError as error:
        from transformer.devices import is_full  # here, since it loads PyTorch

        if not is_full(error):
            raise
        print("The GPU has no memory left: ask for less at once, or use --device cpu.", file=sys.stderr)
        return 2


def _sentence(error: Exception) -> str:
    """The message of an error; the operating system's errors without their number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.strerror}." if error.filename is None else f"{error.filename}: {error.strerror}."
