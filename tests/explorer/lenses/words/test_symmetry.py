"""Links of two directions as one alignment: small cases by hand, and many against matrices."""

from __future__ import annotations

import random

import numpy as np
import pytest

from explorer.lenses.words.links import Links
from explorer.lenses.words.symmetry import WAYS, Way, symmetrised


def links(text: str) -> Links:
    return frozenset((int(link[0]), int(link[2])) for link in text.split())


# forward, backward, and what each way makes of them
BY_HAND = {
    "both agree": ("0-0 1-1", "0-0 1-1", dict.fromkeys(WAYS, "0-0 1-1")),
    "each side has a neighbour": (
        "0-0 1-1 2-1",
        "0-0 1-1 1-2",
        {
            "intersection": "0-0 1-1",
            "union": "0-0 1-1 1-2 2-1",
            "grow-diag": "0-0 1-1 1-2 2-1",
            "grow-diag-final": "0-0 1-1 1-2 2-1",
            "grow-diag-final-and": "0-0 1-1 1-2 2-1",
        },
    ),
    # 1-0 touches 0-0, but both of its words are linked; 4-4 and 4-0 touch nothing
    "linked words and far ones": (
        "0-0 1-1 1-0 4-4",
        "0-0 1-1 4-0",
        {
            "intersection": "0-0 1-1",
            "union": "0-0 1-0 1-1 4-0 4-4",
            "grow-diag": "0-0 1-1",
            "grow-diag-final": "0-0 1-1 4-4",  # then neither word of 4-0 is free
            "grow-diag-final-and": "0-0 1-1 4-4",
        },
    ),
    # the same turned round: 4-0 comes first and has one free word, 4-4 then another
    "the forward direction is asked first": (
        "0-0 1-1 4-0",
        "0-0 1-1 1-0 4-4",
        {
            "grow-diag": "0-0 1-1",
            "grow-diag-final": "0-0 1-1 4-0 4-4",
            "grow-diag-final-and": "0-0 1-1 4-4",
        },
    ),
    # from 1-1 to 2-2 over the corner, and from there to 3-3: nothing but diagonals
    "a chain": ("1-1 2-2", "1-1 3-3", {"intersection": "1-1", "grow-diag": "1-1 2-2 3-3"}),
    # 0-1 and 1-0 come before the corner 0-0, whose words are no longer free then
    "sides before corners": ("1-1 0-1 0-0", "1-1 1-0", {"grow-diag": "0-1 1-0 1-1"}),
    "nothing in common": ("0-1", "1-0", {"grow-diag": "", "grow-diag-final-and": "0-1 1-0"}),
    "no links": ("", "", dict.fromkeys(WAYS, "")),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_small_cases_are_those_worked_out_by_hand(case: str) -> None:
    forward, backward, expected = BY_HAND[case]
    for way, found in expected.items():
        assert symmetrised(links(forward), links(backward), way) == links(found), way  # type: ignore[arg-type]


def by_matrix(forward: Links, backward: Links, way: Way, size: int) -> Links:
    """The pseudo-code of Koehn et al. (2005) on tables [target word, source word] with a border of zeros."""
    tables = [np.zeros((size + 2, size + 2), bool) for _ in range(2)]
    for table, found in zip(tables, (forward, backward), strict=True):
        for f, e in found:
            table[e + 1, f + 1] = True
    union = tables[0] | tables[1]
    made = union if way == "union" else tables[0] & tables[1]
    changed = way not in ("intersection", "union")
    while changed:
        changed = False
        for e in range(1, size + 1):
            for f in range(1, size + 1):
                if not made[e, f]:
                    continue
                for de, df in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
                    e_new, f_new = e + de, f + df
                    free = not made[e_new].any() or not made[:, f_new].any()
                    if free and union[e_new, f_new]:
                        made[e_new, f_new] = changed = True
    if "final" in way:
        for table in tables:
            for e, f in np.argwhere(table):
                free = not made[e].any(), not made[:, f].any()
                made[e, f] |= all(free) if way.endswith("and") else any(free)
    return frozenset((int(f) - 1, int(e) - 1) for e, f in np.argwhere(made))


@pytest.mark.parametrize("way", WAYS)
def test_random_links_are_joined_as_by_the_paper_s_tables(way: Way) -> None:
    draw = random.Random(7)
    sizes = set()
    for _ in range(300):
        size = draw.randint(1, 7)
        forward = frozenset((draw.randrange(size), j) for j in range(size) if draw.random() < 0.9)
        backward = frozenset((i, draw.randrange(size)) for i in range(size) if draw.random() < 0.9)
        found = symmetrised(forward, backward, way)
        assert found == by_matrix(forward, backward, way, size)
        sizes.add(len(found))
    assert len(sizes) > 2
