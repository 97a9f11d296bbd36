"""`python -m transformer familiarity`: chooses when a text counts as unlike those that a model knows best."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from transformer.commands.arguments import model_command, open_model, percent, shown, write
from transformer.lenses.familiarity import Traits, as_json, choose, share_flagged, traits_of
from transformer.storage.description import FAMILIARITY_FILE, model_digests
from transformer.storage.files import write_json
from transformer.text.pairs import read_pairs
from transformer.translate.corpus import greedy_log_probs
from transformer.translate.translator import Translator
from transformer.translate.wording import InputError

FILES = ("known", "unknown", "known_test", "unknown_test")


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    parser = model_command(
        commands,
        "familiarity",
        write_familiarity,
        "choose when a text counts as unlike those that the model knows best, and write familiarity.json",
    )
    texts = {
        "known": "texts that the model knows best, such as its validation data, to choose with",
        "unknown": "texts unlike them, such as news, to choose with",
        "known_test": "other texts that it knows best, to report on",
        "unknown_test": "other texts unlike them, to report on",
    }
    for name, text in texts.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, required=True, metavar="FILE", help=f"source<TAB>target lines: {text}")
    parser.add_argument("--sentences", type=int, default=2000, help="use the first N lines of each file")
    parser.add_argument("--instead", metavar="NAME", help="model on the Hub to offer for other texts")
    parser.add_argument(
        "--instead-bytes", type=int, default=0, metavar="N", help="size of that model's files"
    )


def write_familiarity(arguments: argparse.Namespace) -> int:
    """`familiarity`: chooses the measure, reports both shares, and writes `familiarity.json`."""
    directory = Path(arguments.model)
    if not directory.is_dir():
        raise ValueError(f"There is no directory {directory} to write into; see `pull --output`.")
    texts = {name: _sources(getattr(arguments, name), arguments.sentences) for name in FILES}
    translator = open_model(arguments)
    traits = {name: _traits(translator, found) for name, found in texts.items()}
    measure = choose(traits["known"], traits["unknown"])
    flagged = {
        name: round(share_flagged(measure, traits[f"{name}_test"]), 4) for name in ("known", "unknown")
    }
    measure = replace(
        measure, flagged=flagged, instead=arguments.instead, instead_bytes=arguments.instead_bytes
    )
    values = {
        "model": translator.name,
        "data": "; ".join(
            f"{name}: {len(texts[name]):,} texts of {shown(getattr(arguments, name))}" for name in FILES
        ),
        "command": _command(arguments),
        "date": date.today().isoformat(),
        "digests": model_digests(directory),
    } | as_json(measure)
    write_json(directory / FAMILIARITY_FILE, values)
    told = ", ".join(
        f"{percent(share)} of {shown(getattr(arguments, f'{name}_test'))}" for name, share in flagged.items()
    )
    write(arguments, values, f"Unlike the known texts: {told}. Wrote {directory / FAMILIARITY_FILE}.")
    return 0


def _sources(path: str, most: int) -> list[str]:
    return [pair.source for pair in read_pairs(path)[:most]]


def _traits(translator: Translator, texts: Sequence[str]) -> list[Traits]:
    """The traits of the texts that the model can read; others are left out."""
    readable = [text for text in texts if _is_readable(translator, text)]
    found = greedy_log_probs(translator, readable)
    return [
        traits_of(text, translator.source_pieces(translator.ids(text)), log_probs)
        for text, log_probs in zip(readable, found, strict=True)
    ]


def _is_readable(translator: Translator, text: str) -> bool:
    try:
        return bool(translator.ids(text))
    except InputError:
        return False


def _command(arguments: argparse.Namespace) -> str:
    names = ("model", *FILES, "sentences", "instead", "instead_bytes")
    given = ((name.replace("_", "-"), getattr(arguments, name)) for name in names)
    options = " ".join(f"--{name} {value}" for name, value in given if value)
    return f"python -m transformer familiarity {options}"
