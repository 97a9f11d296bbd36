from __future__ import annotations

import numpy as np
import pytest

from explorer.lenses.heads import roles
from explorer.lenses.heads.measures import STATISTICS
from transformer.config import AttentionKind

NOTHING = {statistic.name: np.zeros((1, 2), dtype=np.float32) for statistic in STATISTICS}
NOTHING["content_chance"] = np.full((1, 2), 0.4, dtype=np.float32)
ENCODER, DECODER, CROSS = AttentionKind


def means(**values: list[float]) -> dict[str, np.ndarray]:
    """Statistics of two heads of one layer."""
    return NOTHING | {name: np.array([pair], dtype=np.float32) for name, pair in values.items()}


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (ENCODER, {"previous": [0.49, 0.5]}, ["mixed", "previous token"]),
        (ENCODER, {"next": [1.0, 0.2]}, ["next token", "mixed"]),
        (DECODER, {"same_word": [0.7, 0.0], "first": [0.0, 0.6]}, ["same word", "first or last"]),
        (ENCODER, {"last": [0.2, 0.5]}, ["mixed", "first or last"]),
        (ENCODER, {"special_mass": [0.3, 0.4], "punctuation_mass": [0.1, 0.2]}, ["mixed", "sink"]),
        (CROSS, {"content_mass": [0.5, 0.6]}, ["mixed", "content"]),
        (CROSS, {"same_word": [1.0, 1.0]}, ["mixed", "mixed"]),
        (CROSS, {"aer": [0.41, 0.39], "aer_diagonal": [0.5, 0.5]}, ["mixed", "alignment"]),
        (CROSS, {"aer": [0.0, 0.1], "aer_diagonal": [0.0, 0.0]}, ["alignment", "mixed"]),
        (
            CROSS,
            {"aer": [0.9, 0.39], "aer_read": [0.1, 0.9], "aer_diagonal": [0.5, 0.5]},
            ["alignment", "alignment"],
        ),
        (
            CROSS,
            {"aer": [0.1, 0.9], "aer_diagonal": [0.5, 0.5], "content_mass": [1, 1]},
            ["alignment", "content"],
        ),
        (ENCODER, {"aer": [0.1, 0.1], "aer_diagonal": [0.5, 0.5]}, ["mixed", "mixed"]),
        (ENCODER, {"previous": [0.6, 0.6], "content_mass": [1, 0]}, ["previous token", "previous token"]),
    ],
)
def test_a_head_has_the_first_role_whose_threshold_it_reaches(
    kind: AttentionKind, values: dict[str, list[float]], expected: list[str]
) -> None:
    assert roles.assign(means(**values), kind).tolist() == [expected]


def test_the_better_row_of_an_alignment_is_named() -> None:
    errors = means(aer=[0.9, 0.39], aer_read=[0.1, 0.9])
    assert roles.aligned_by(errors).tolist() == [["reads", "predicts"]]


def test_without_statistics_that_a_head_cannot_have_it_is_mixed() -> None:
    few = {
        name: values
        for name, values in NOTHING.items()
        if name not in {"previous", "next", "last", "same_word"}
    }
    assert roles.assign(few, DECODER).tolist() == [["mixed", "mixed"]]


def test_every_role_says_its_threshold() -> None:
    for role in roles.ROLES:
        numbers = {f"{role.threshold:.2f}".rstrip("0"), f"{100 * role.threshold:.0f} %"}
        assert any(number in role.definition for number in numbers), role.name


def test_a_mixed_head_stays_below_every_threshold() -> None:
    shown = roles.shows("mixed", means(previous=[0.4, 0.5]), ENCODER)
    assert roles.keeps("mixed", shown).tolist() == [[True, False]]
