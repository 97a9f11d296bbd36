"""`python -m lab familiarity`: chooses when a model's translation is doubted."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from transformer.commands.arguments import model_command, open_model, percent, shown, write
from transformer.lenses.words.familiarity import (
    BAD_BELOW,
    JUDGED,
    Found,
    Traits,
    as_json,
    choose,
    findings,
    traits_of,
)
from transformer.runs.corpus import greedy
from transformer.runs.translator import Translator
from transformer.runs.wording import InputError
from transformer.storage.description import FAMILIARITY_FILE, model_digests
from transformer.storage.files import write_json
from transformer.text.pairs import read_pairs


class Told(NamedTuple):
    """Texts with their traits, and whether the translation of each is bad."""

    traits: list[Traits]
    bad: list[bool]


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    parser = model_command(
        commands,
        "familiarity",
        write_familiarity,
        "choose when a model's translation is doubted, and write familiarity.json",
    )
    for name, text in (("fit", "to choose with"), ("test", "to report on, each file by itself")):
        parser.add_argument(
            f"--{name}", required=True, nargs="+", metavar="FILE", help=f"source<TAB>target lines {text}"
        )
    parser.add_argument(
        "--judged",
        metavar="FILE",
        help="lines that end in source<TAB>translation<TAB>yes or no (acceptable), to report on; the second "
        "column is the source; lines whose translation is not this model's are left out, and the list if most"
        " are",
    )
    parser.add_argument("--sentences", type=int, default=2000, help="use the first N lines of each file")
    parser.add_argument("--instead", metavar="NAME", help="larger model on the Hub to offer")
    parser.add_argument(
        "--instead-bytes", type=int, default=0, metavar="N", help="size of that model's files"
    )


def write_familiarity(arguments: argparse.Namespace) -> int:
    """`familiarity`: chooses the measure, reports what it finds, and writes `familiarity.json`."""
    directory = Path(arguments.model)
    if not directory.is_dir():
        raise ValueError(f"There is no directory {directory} to write into; see `pull --output`.")
    translator = open_model(arguments)
    parts = [_compared(translator, path, arguments.sentences) for path in arguments.fit]
    fit = Told(*(list(chain.from_iterable(each)) for each in zip(*parts, strict=True)))
    measure = choose(*fit)
    told = {shown(path): _compared(translator, path, arguments.sentences) for path in arguments.test}
    if arguments.judged is not None and (judged := _judged(translator, arguments.judged)).traits:
        told[JUDGED] = judged
    found = {name: findings(measure, *each) for name, each in told.items()}
    measure = replace(
        measure,
        found=found,
        instead=arguments.instead,
        instead_bytes=arguments.instead_bytes,
        sentences=arguments.sentences,
    )
    values = {
        "model": translator.name,
        "data": f"{len(fit.bad):,} texts of {' and '.join(map(shown, arguments.fit))}, of whose greedy "
        f"translations {sum(fit.bad):,} are bad (chrF below {BAD_BELOW:g})",
        "command": _command(arguments),
        "date": date.today().isoformat(),
        "digests": model_digests(directory),
    } | as_json(measure)
    write_json(directory / FAMILIARITY_FILE, values)
    lines = "".join(f"{name}: {said(each)}\n" for name, each in found.items())
    write(arguments, values, f"{lines}Wrote {directory / FAMILIARITY_FILE}.")
    return 0


def said(found: Found) -> str:
    """What the measure finds, in one line."""
    doubted = f"doubts {found.flagged:,} of {found.texts:,} translations"
    if not found.flagged or not found.bad:
        return f"{doubted}, of which {found.bad:,} are bad"
    return (
        f"{doubted}, {percent(found.precision)} of them bad (precision), and {percent(found.recall)} of the "
        f"{found.bad:,} bad ones (recall)"
    )


def _compared(translator: Translator, path: str, most: int) -> Told:
    """The texts of a file that the model can read; a translation of small chrF is bad."""
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF()
    pairs = [pair for pair in read_pairs(path)[:most] if _is_readable(translator, pair.source)]
    traits, written = _translated(translator, [pair.source for pair in pairs])
    scores = [
        chrf.sentence_score(text, [pair.target]).score for text, pair in zip(written, pairs, strict=True)
    ]
    return Told(traits, [score < BAD_BELOW for score in scores])


def _judged(translator: Translator, path: str) -> Told:
    """The texts of a list whose judged translation is the one that the model writes."""
    rows = [line.split("\t") for line in Path(path).read_text("utf-8").splitlines()]
    readable = [row for row in rows if _is_readable(translator, row[1])]
    traits, written = _translated(translator, [row[1] for row in readable])
    own = [
        (each, row[-1] == "no")
        for each, row, text in zip(traits, readable, written, strict=True)
        if row[-2] == text
    ]
    own = own if 2 * len(own) >= len(rows) else []
    return Told([each for each, _ in own], [bad for _, bad in own])


def _translated(translator: Translator, texts: Sequence[str]) -> tuple[list[Traits], list[str]]:
    """Traits and greedy translations of texts."""
    found = greedy(translator, texts)
    traits = [
        traits_of(text, translator.source_pieces(translator.ids(text)), log_probs)
        for text, (_, log_probs) in zip(texts, found, strict=True)
    ]
    return traits, [written for written, _ in found]


def _is_readable(translator: Translator, text: str) -> bool:
    try:
        return bool(translator.ids(text))
    except InputError:
        return False


def _command(arguments: argparse.Namespace) -> str:
    names = ("model", "fit", "test", "judged", "sentences", "instead", "instead_bytes")
    given = ((name.replace("_", "-"), getattr(arguments, name)) for name in names)
    options = " ".join(
        f"--{name} {' '.join(value) if isinstance(value, list) else value}" for name, value in given if value
    )
    return f"python -m lab familiarity {options}"
