"""Links of two directions made one alignment (Koehn, Och and Marcu 2003; grow-diag: Koehn et al. 2005)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, get_args

from explorer.lenses.words.links import Links

Way = Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"]
WAYS: tuple[Way, ...] = get_args(Way)
_AROUND = ((0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1))
"""Steps to the neighbours of a link, in the order in which the paper looks at them."""


def symmetrised(
    forward: Links,  # of the model that reads the source
    backward: Links,  # of the model that reads the target, turned round
    way: Way,  # "grow-diag" adds to the intersection; "-final" and "-final-and" add to what it makes
) -> Links:
    """One alignment of both directions, each written (source word, target word).

    "grow-diag" adds links of the union that touch one and have a word without a link; "-final" then adds all
    that have such a word, "-final-and" those whose words both have none.
    """
    either = forward | backward
    if way == "union":
        return either
    links = set(forward & backward)
    if way.startswith("grow-diag"):
        _grow(links, either)
    if way.startswith("grow-diag-final"):
        for direction in (forward, backward):
            _add(links, _in_order(direction), all if way.endswith("and") else any)
    return frozenset(links)


def _grow(links: set[tuple[int, int]], either: Links) -> None:
    before = -1
    while before < len(links):
        before = len(links)
        for i, j in _in_order(either):
            if (i, j) in links:  # asked anew, since this round may have added it
                around = [(i + across, j + down) for across, down in _AROUND]
                _add(links, [each for each in around if each in either], any)


def _add(
    links: set[tuple[int, int]],
    offered: Iterable[tuple[int, int]],
    wanted: Callable[[Iterable[bool]], bool],  # any: one word without a link is enough; all: both
) -> None:
    for i, j in offered:
        if wanted([all(i != source for source, _ in links), all(j != target for _, target in links)]):
            links.add((i, j))


def _in_order(links: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """By target word, then by source word."""
    return sorted(links, key=lambda link: link[::-1])
