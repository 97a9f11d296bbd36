"""`python -m lab remake`: measures a model again and rewrites every file that describes it.

Each part is a command of its own, run with the paths that the project uses, so a file says how it was made.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.experiments import command as experiments
from lab.heads import command as heads
from lab.learning import history
from lab.models import card, familiarity, scores, showcase
from lab.relations import command as relations
from transformer.lenses.words.familiarity import read_measure
from transformer.storage.description import HEADS_FILE, SCORES_FILE, read_config
from transformer.storage.files import CheckpointError
from transformer.storage.marks import of_another_model

HEADS_SENTENCES = 500
PARTS = (
    *("heads", "survey", "means", "backups", "experiments", "probes"),
    *("familiarity", "scores", "history", "card", "claims", "first"),
)
JUDGED = Path("tests", "blind", "judged.tsv")
SAMPLE_FILE = "tatoeba-en-de.tsv.gz"


@dataclass(frozen=True)
class Part:
    """One step of the remake."""

    name: str  # the command
    options: Sequence[object] = ()  # its options besides `--model`
    needs: Sequence[Path] = ()  # the files without which it is skipped

    def words(self, directory: Path) -> list[str]:
        """The command line of this part."""
        return [self.name, "--model", str(directory), *map(str, self.options)]

    @property
    def missing(self) -> Path | None:
        """The first file that this part needs and that is not there."""
        return next((path for path in self.needs if not path.exists()), None)


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "measure a model again and rewrite every file that describes it"
    parser: argparse.ArgumentParser = commands.add_parser("remake", help=text, description=text)
    parser.add_argument("--model", required=True, type=Path, metavar="DIR", help="model directory")
    scores.add_folders(parser)
    history.add_log(parser)
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, metavar="PART", help=f"make these alone, of {', '.join(PARTS)}"
    )
    parser.set_defaults(run=remake)


def parts(directory: Path, corpora: Path, sample: Path, log: Path) -> list[Part]:
    """Everything that describes a model, in the order in which it is made."""
    tatoeba, news = corpora / "tatoeba-en-de", "news.en-de.tsv.gz"
    valid, test, train = (tatoeba / f"{name}.tsv.gz" for name in ("valid", "test", "train"))
    europarl, own = corpora / scores.GOLD["Europarl"], sample / scores.OWN_GOLD_FILE
    older, newer = corpora / "extra-train" / news, corpora / "extra-tests" / "newstest2014.en-de.tsv.gz"
    probes, pairs = corpora / "probes", sample / SAMPLE_FILE
    aligned = "--data", valid, "--alignments", europarl, "--sentences", HEADS_SENTENCES
    doubted = "--fit", valid, older, "--test", test, newer, "--judged", JUDGED, *_as_before(directory)
    trees = [probes / name for name in ("pud-en.conllu.gz", "pud-de.conllu.gz", "winomt-en.tsv.gz")]
    examples = showcase.examples_file(directory)
    folders = "--corpora", corpora, "--sample", sample
    return [
        Part("heads", aligned, [valid, europarl]),
        Part("survey", ["--data", pairs, "--alignments", own], [pairs, own]),
        Part("means", ["--data", pairs], [pairs]),
        Part("backups", ["--data", pairs], [pairs]),
        Part("experiments", [], [directory / HEADS_FILE]),
        Part("probes", ["--probes", probes, "--texts", train], [*trees, train]),
        Part("familiarity", doubted, [valid, older, test, newer, JUDGED]),
        Part("scores", folders, [corpora]),
        Part("history", ["--log", log], [log]),
        Part("card", [], [directory / SCORES_FILE]),
        Part("claims", [], [examples]),
        Part("first", [], [examples]),
    ]


def _as_before(directory: Path) -> list[str]:
    """The options of `familiarity` as the present file names them: model to offer, number of sentences."""
    try:
        measure = read_measure(directory)
    except CheckpointError:
        return []
    if measure is None:
        return []
    given = {name: getattr(measure, name) for name in ("instead", "instead_bytes", "sentences")}
    return [
        word
        for name, value in given.items()
        if value is not None
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]


def remake(arguments: argparse.Namespace) -> int:
    """`remake`: runs the parts whose data are there, and says what was made and what was not.

    Returns:
        The exit status: 1 if a person has to mend something.
    """
    directory: Path = arguments.model
    read_config(directory)
    commands, started = _commands(), time.perf_counter()
    chosen = [
        part
        for part in parts(directory, arguments.corpora, arguments.sample, history.log_of(arguments))
        if arguments.only is None or part.name in arguments.only
    ]
    made, status = [], 0
    for number, part in enumerate(chosen, start=1):
        place = f"[{number}/{len(chosen)}, {time.perf_counter() - started:.0f} s] {part.name}"
        if (missing := part.missing) is not None:
            print(f"{place}: skipped, because {missing} is not there.", flush=True)
            continue
        print(f"{place} …", flush=True)
        parsed = commands.parse_args(part.words(directory))
        status = max(status, int(parsed.run(parsed)))
        made.append(part.name)
    print(_summary(directory, made, time.perf_counter() - started), flush=True)
    return status


def _commands() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab")
    commands = parser.add_subparsers()
    heads.add_commands(commands)
    relations.add_command(commands)
    familiarity.add_command(commands)
    experiments.add_commands(commands)
    scores.add_command(commands)
    history.add_command(commands)
    card.add_command(commands)
    showcase.add_commands(commands)
    return parser


def _summary(directory: Path, made: Sequence[str], seconds: float) -> str:
    told = f"Made {', '.join(made) or 'nothing'} of {directory} in {seconds:.0f} s."
    old = of_another_model(directory)
    if old:
        told += f" These files do not bear the hash of this model: {', '.join(old)}."
    return (
        f"{told} Still to do by hand: read the card, and take the screenshots of assets/screenshots again "
        "if the app opens this model first."
    )
