"""Links between the words of a sentence and its translation: files of them, and two directions made one."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from transformer.text.pairs import TRUSTED, DataError, ReadBounds, filled_lines

Links = frozenset[tuple[int, int]]
"""Pairs of a source word and a target word; words count from 0."""
_LINK = re.compile(r"(\d{1,9})([-p])(\d{1,9})", re.ASCII)


@dataclass(frozen=True)
class GoldPair:
    """A sentence pair with links made by hand; words count from 0."""

    source: tuple[str, ...]  # source words
    target: tuple[str, ...]  # target words
    sure: Links  # (source word, target word) links that an alignment should have
    possible: Links  # links that it may have, including the sure links
    place: str = field(default="", compare=False)  # file and line that it comes from


def read_gold(path: str | Path, bounds: ReadBounds = TRUSTED) -> list[GoldPair]:
    """Reads `source<TAB>target<TAB>links` lines, `i-j` sure, `ipj` possible; DataError names a wrong one."""
    pairs = [_gold_pair(f"{path}:{number}", line) for number, line in filled_lines(path, bounds)]
    if not pairs:
        raise DataError(
            f"{path}: the file is empty; it needs one `source<TAB>target<TAB>links` line per pair."
        )
    return pairs


def _gold_pair(place: str, line: str) -> GoldPair:
    columns = line.split("\t")
    if len(columns) != 3:
        raise DataError(f"{place}: expected source, tab, target, tab, links; found {len(columns)} columns.")
    source, target = tuple(columns[0].split()), tuple(columns[1].split())
    if not source or not target:
        raise DataError(f"{place}: the {'target' if source else 'source'} is empty.")
    links: dict[str, set[tuple[int, int]]] = {"-": set(), "p": set()}
    for text in columns[2].split():
        match = _LINK.fullmatch(text)
        if not match:
            raise DataError(
                f"{place}: {text[:40]!r} is not a link; write 3-4 for a sure link or 3p4 for a possible one."
            )
        link = int(match[1]), int(match[3])
        if link[0] >= len(source) or link[1] >= len(target):
            raise DataError(f"{place}: the link {text} points outside the sentence; words count from 0.")
        links[match[2]].add(link)
    return GoldPair(source, target, frozenset(links["-"]), frozenset(links["-"] | links["p"]), place)


Way = Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"]
WAYS: tuple[Way, ...] = get_args(Way)
_AROUND = ((0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1))
"""Steps to the neighbours of a link, in the order in which the paper looks at them."""


def symmetrised(forward: Links, backward: Links, way: Way) -> Links:
    """One alignment of both directions, each written (source word, target word).

    "grow-diag" adds links of the union that touch one and have a word without a link; "-final" then adds all
    that have such a word, "-final-and" those whose words both have none.
    """
    either = forward | backward
    if way == "union":
        return either
    links = set(forward & backward)
    if way.startswith("grow-diag"):
        before = -1
        while before < len(links):
            before = len(links)
            for i, j in _in_order(either):
                if (i, j) in links:  # looked up anew, since this round may have added it
                    around = [(i + across, j + down) for across, down in _AROUND]
                    _add(links, [each for each in around if each in either], any)
    if way.startswith("grow-diag-final"):
        for direction in (forward, backward):
            _add(links, _in_order(direction), all if way.endswith("and") else any)
    return frozenset(links)


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
