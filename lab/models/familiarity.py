"""`python -m lab familiarity`: chooses when a model's translation is doubted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

from lab.measurement import File, Json, Pairs, Subject, measurement, report
from lenses.words.familiarity import (
    BAD_BELOW,
    JUDGED,
    UNKNOWN_ONLY,
    DoubtHits,
    Traits,
    as_json,
    choose,
    findings,
    traits_of,
)
from transformer.commands.arguments import percent, shown
from transformer.runs.corpus import greedy
from transformer.runs.translator import Translator
from transformer.runs.wording import InputError
from transformer.storage.description import FAMILIARITY_FILE
from transformer.text.pairs import read_pairs


class Told(NamedTuple):
    """Texts with their traits, and whether the translation of each is bad."""

    traits: list[Traits]
    bad: list[bool]


@measurement(FAMILIARITY_FILE)
def familiarity(
    model: Subject,
    fit: Annotated[
        tuple[Pairs, ...],
        "source<TAB>target lines to choose with; without, only unknown characters are doubted",
    ] = (),
    test: Annotated[tuple[Pairs, ...], "source<TAB>target lines to report on, each file by itself"] = (),
    judged: Annotated[
        tuple[File, ...],
        "lines kind<TAB>source, then <TAB>translation<TAB>yes or no (acceptable) of one model or several, to "
        "report on; lines without a translation of this model's are left out, and the list if most are",
    ] = (),
    sentences: Annotated[int, "use the first N lines of each file"] = 2000,
    instead: Annotated[str | None, "larger model on the Hub to offer"] = None,
    instead_bytes: Annotated[int, "size of that model's files"] = 0,
) -> Json:
    """Chooses when a model's translation is doubted, and reports what that finds."""
    known = _together(_compared(model.translator, path, sentences) for path in fit)
    measure = choose(*known) if fit else UNKNOWN_ONLY
    told = {shown(path): _compared(model.translator, path, sentences) for path in test}
    told[JUDGED] = _together(_judged(model.translator, path) for path in judged)
    measure = replace(
        measure,
        found={name: findings(measure, *each) for name, each in told.items() if each.traits},
        instead=instead,
        instead_bytes=instead_bytes,
        sentences=sentences,
    )
    for name, each in measure.found.items():
        report(f"{name}: {said(each)}")
    chosen_on = (
        f"{len(known.bad):,} texts of {' and '.join(map(shown, fit))}, of whose greedy translations "
        f"{sum(known.bad):,} are bad (chrF below {BAD_BELOW:g})"
    )
    return {"data": chosen_on if fit else "none: only what has no token is doubted"} | as_json(measure)


def _together(parts: Iterable[Told]) -> Told:
    """The texts of several files."""
    found = Told([], [])
    for each in parts:
        found.traits.extend(each.traits)
        found.bad.extend(each.bad)
    return found


def said(found: DoubtHits) -> str:
    """Findings of the measure, in one line."""
    doubted = f"doubts {found.flagged:,} of {found.texts:,} translations"
    if not found.flagged or not found.bad:
        return f"{doubted}, of which {found.bad:,} are bad"
    return (
        f"{doubted}, {percent(found.precision)} of them bad (precision), and {percent(found.recall)} of the "
        f"{found.bad:,} bad ones (recall)"
    )


def _compared(translator: Translator, path: Path, most: int) -> Told:
    """The texts of a file that the model can read; a translation of small chrF is bad."""
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF()
    pairs = [pair for pair in read_pairs(path)[:most] if _is_readable(translator, pair.source)]
    traits, written = _translated(translator, [pair.source for pair in pairs])
    scores = [
        chrf.sentence_score(text, [pair.target]).score for text, pair in zip(written, pairs, strict=True)
    ]
    return Told(traits, [score < BAD_BELOW for score in scores])


def _judged(translator: Translator, path: Path) -> Told:
    """The texts of a list whose judged translation is the one that the model writes."""
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    readable = [row for row in rows if _is_readable(translator, row[1])]
    traits, written = _translated(translator, [row[1] for row in readable])
    verdicts = [dict(zip(row[2::2], row[3::2], strict=True)) for row in readable]
    own = [
        (each, verdict[text] == "no")
        for each, verdict, text in zip(traits, verdicts, written, strict=True)
        if text in verdict
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
