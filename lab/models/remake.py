"""`python -m lab remake`: measures a model again and rewrites every file that describes it.

Each part is a command of its own, run with the paths that the project uses, so a file says how it was made.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.heads.command import heads, means, survey
from lab.heads.shipped import is_brief
from lab.learning.history import Log, history
from lab.measurement import Command, Model, command, parser_of
from lab.models.card import card
from lab.models.corpora import data_of
from lab.models.familiarity import familiarity
from lab.models.scores import CORPORA, SAMPLE, Corpora, Sample, scores
from lab.models.showcase import claims, first
from lab.studies.faithfulness import faithfulness
from lab.studies.importance import importance
from lab.studies.way_back import way_back
from lab.studies.weight_effect import weight_effect
from lenses.words.familiarity import read_measure
from transformer.storage.description import EXAMPLES_FILE, SCORES_FILE, read_config
from transformer.storage.files import CheckpointError, read_json
from transformer.storage.marks import of_another_model
from transformer.training.runs.files import LOG_FILE

COMMANDS = (
    heads,
    survey,
    means,
    importance,
    faithfulness,
    weight_effect,
    way_back,
    familiarity,
    scores,
    history,
    card,
    claims,
    first,
)
PARTS = [each.name for each in COMMANDS]


@dataclass(frozen=True)
class RemakeStep:
    """One step of the remake."""

    command: Command
    options: Sequence[object] = ()  # its options besides `--model`
    needs: Sequence[Path] = ()  # the files without which it is skipped

    def words(self, directory: Path) -> list[str]:
        """The command line of this part."""
        return [self.command.name, "--model", str(directory), *map(str, self.options)]

    @property
    def missing(self) -> Path | None:
        """The first file that this part needs and that is not there."""
        return next((path for path in self.needs if not path.exists()), None)


def parts(directory: Path, corpora: Path, sample: Path, log: Path) -> list[RemakeStep]:
    """Everything that describes a model, in the order in which it is made."""
    data = data_of(directory)
    pairs, own, gold = sample / data.sample, sample / data.own_gold, corpora / data.gold[1]
    valid = corpora / data.valid if data.valid else pairs
    fit, test = ([*map(corpora.joinpath, names)] for names in (data.doubt, data.doubted))
    doubted = [
        option for name, paths in (("--fit", fit), ("--test", test)) if paths for option in (name, *paths)
    ]
    doubted += ["--judged", *data.judged, *_as_before(directory)]
    examples = directory / EXAMPLES_FILE
    folders = "--corpora", corpora, "--sample", sample
    return [
        RemakeStep(heads, ["--data", valid, "--alignments", gold], [valid, gold]),
        RemakeStep(
            survey, ["--data", pairs, "--alignments", own, *["--brief"] * is_brief(directory)], [pairs, own]
        ),
        RemakeStep(means, ["--data", pairs], [pairs]),
        RemakeStep(importance, ["--data", pairs], [pairs]),
        RemakeStep(faithfulness, ["--data", pairs], [pairs]),
        RemakeStep(weight_effect, ["--data", pairs], [pairs]),
        RemakeStep(way_back, ["--data", pairs], [pairs]),
        RemakeStep(familiarity, doubted, [*fit, *test, *data.judged]),
        RemakeStep(scores, [*folders, *_compared_before(directory)], [corpora]),
        RemakeStep(history, ["--log", log], [log]),
        RemakeStep(card, [], [directory / SCORES_FILE]),
        RemakeStep(claims, [], [examples]),
        RemakeStep(first, [], [examples]),
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
        word for name, value in given.items() if value for word in (f"--{name.replace('_', '-')}", str(value))
    ]


def _compared_before(directory: Path) -> list[object]:
    """The option of `scores` that names the model with which the present file compares."""
    if not (directory / SCORES_FILE).is_file():
        return []
    named = {
        each["against"]["model"]
        for each in read_json(directory / SCORES_FILE)["translation"]
        if "against" in each
    }
    return [word for name in sorted(named) for word in ("--against", directory.parent / name)]


@command(parts=PARTS)
def remake(
    model: Model,
    corpora: Corpora = CORPORA,
    sample: Sample = SAMPLE,
    log: Log = None,
    only: Sequence[str] = (),
) -> int:
    """Measures a model again and rewrites every file that describes it; says what was not made."""
    read_config(model)
    started = time.perf_counter()
    known = parts(model, corpora, sample, log or model / LOG_FILE)
    chosen = [part for part in known if not only or part.command.name in only]
    made, status = [], 0
    for number, part in enumerate(chosen, start=1):
        place = f"[{number}/{len(chosen)}, {time.perf_counter() - started:.0f} s] {part.command.name}"
        if (missing := part.missing) is not None:
            print(f"{place}: skipped, because {missing} is not there.", flush=True)
            continue
        print(f"{place} …", flush=True)
        parsed = parser_of([part.command]).parse_args(part.words(model))
        status = max(status, int(parsed.run(parsed)))
        made.append(part.command.name)
    print(_summary(model, made, time.perf_counter() - started), flush=True)
    return status


def _summary(directory: Path, made: Sequence[str], seconds: float) -> str:
    told = f"Made {', '.join(made) or 'nothing'} of {directory} in {seconds:.0f} s."
    old = of_another_model(directory)
    if old:
        told += f" These files do not bear the hash of this model: {', '.join(old)}."
    return (
        f"{told} Still to do by hand: read the card, and take the screenshots of assets/screenshots again "
        "if the app opens this model first."
    )
