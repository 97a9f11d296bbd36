"""Profiles against plain loops over every row and key."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from explorer.lenses.heads.profile import LEAST
from explorer.lenses.heads.survey import Line, Survey, Surveyor
from explorer.lenses.words.groups import reading_groups
from transformer.config import AttentionKind
from transformer.run import Translation
from transformer.translator import Translator

KINDS = tuple(AttentionKind)
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
LINES = [
    Line(" ".join(WORDS[(3 * i + j * (1 + i % 3)) % 10] for j in range(5 + i % 3)), "eins zwei drei vier")
    for i in range(20)
]


@pytest.fixture(scope="module")
def runs(translator: Translator) -> list[Translation]:
    return [translator.force(line.source, line.target or "") for line in LINES]


@pytest.fixture(scope="module")
def survey(translator: Translator) -> Survey:
    surveyor = Surveyor(translator, LINES)
    list(surveyor.run())
    return surveyor.survey()


def rows(runs: list[Translation], kind: AttentionKind, head: tuple[int, int]):
    """Every row of a head that sees more than one key: sentence, query, weights, keys it sees."""
    for number, run in enumerate(runs):
        view = run.head(kind, *head)
        for query, (weights, mask) in enumerate(zip(view.weights, view.mask, strict=True)):
            if mask.sum() > 1:
                yield number, query, weights.astype(float), mask


@pytest.mark.parametrize("by", ["weight", "lift"])
@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_those_with_most_weight_and_most_lift(
    runs: list[Translation], survey: Survey, kind: AttentionKind, by: str
) -> None:
    taken, even, seen = defaultdict[str, float](float), defaultdict[str, float](float), Counter[str]()
    words = [
        {i: group.text for group in reading_groups(run.labels(kind).keys) for i in group.indices}
        for run in runs
    ]
    for run in runs:
        seen.update(group.text for group in reading_groups(run.labels(kind).keys))
    for number, _, weights, mask in rows(runs, kind, (0, 1)):
        for key in np.flatnonzero(mask):
            taken[words[number][key]] += weights[key]
            even[words[number][key]] += 1 / mask.sum()
    total = sum(taken.values())
    values = {w: (taken[w] / total, taken[w] / even[w]) for w in taken if seen[w] >= LEAST}
    best = sorted(values, key=lambda word: -values[word][by == "lift"])
    found = survey.tokens(kind, 0, 1, "words", by)
    assert [each.text for each in found] == best[: len(found)]
    assert len(found) == min(8, len(best))
    for each in found:
        assert each.seen == seen[each.text]
        assert (each.value, each.ratio) == pytest.approx(values[each.text], rel=1e-3)


def test_queries_are_those_of_the_lowest_entropy(runs: list[Translation], survey: Survey) -> None:
    kind, selective = AttentionKind.ENCODER, defaultdict[str, list[float]](list)
    for number, query, weights, mask in rows(runs, kind, (0, 1)):
        seen = weights[mask]
        entropy = -(seen * np.log(np.maximum(seen, 1e-30))).sum() / np.log(mask.sum())
        selective[runs[number].labels(kind).queries[query].lstrip("▁")].append(1 - entropy)
    mean = np.mean([value for values in selective.values() for value in values])
    for each in survey.tokens(kind, 0, 1, "pieces", "selective"):
        assert each.seen == len(selective[each.text]) >= LEAST
        assert each.value == pytest.approx(np.mean(selective[each.text]), abs=1e-4)
        assert each.ratio == pytest.approx(np.mean(selective[each.text]) / mean, rel=1e-3)


@pytest.mark.parametrize("order", ["entropy", "special_mass"])
def test_sentences_stand_in_order_and_open_at_their_row(
    runs: list[Translation], survey: Survey, order: str
) -> None:
    kind, by_line = AttentionKind.CROSS, defaultdict[int, dict[int, float]](dict)
    for number, query, weights, _ in rows(runs, kind, (2, 3)):
        names = runs[number].labels(kind).keys
        entropy = -(weights * np.log(np.maximum(weights, 1e-30))).sum() / np.log(len(names))
        mass = sum(w for w, name in zip(weights, names, strict=True) if name == "</s>")
        by_line[number][query] = entropy if order == "entropy" else mass
    means = sorted((float(np.mean([*each.values()])) for each in by_line.values()), reverse=True)
    fifths = survey.fifths(kind, 2, 3, order)
    shown = [each for fifth in fifths for each in fifth]
    assert [len(fifth) for fifth in fifths] == [3] * 5
    assert [each.value for each in shown] == pytest.approx(
        [means[round(i * 19 / 14)] for i in range(15)], abs=1e-5
    )
    for place, each in enumerate(shown):
        values = by_line[LINES.index(each.line)]
        best = (max if place <= 7 else min)(values, key=values.__getitem__)
        assert each.row is not None
        assert values[each.row] == pytest.approx(values[best], abs=1e-6)
