"""Links between the words of a sentence and its translation, and files of them."""

import re
from dataclasses import dataclass, field
from pathlib import Path

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
    """Reads `source<TAB>target<TAB>links` lines, `i-j` sure, `ipj` possible; DataError names a
    wrong one."""
    pairs = [_gold_pair(f"{path}:{number}", line) for number, line in filled_lines(path, bounds)]
    if not pairs:
        raise DataError(
            f"{path}: the file is empty; it needs one `source<TAB>target<TAB>links` line per pair."
        )
    return pairs


def _gold_pair(place: str, line: str) -> GoldPair:
    columns = line.split("\t")
    if len(columns) != 3:
        raise DataError(
            f"{place}: expected source, tab, target, tab, links; found {len(columns)} columns."
        )
    source = tuple(columns[0].split())
    target = tuple(columns[1].split())
    if not source or not target:
        raise DataError(f"{place}: the {'target' if source else 'source'} is empty.")
    links: dict[str, set[tuple[int, int]]] = {"-": set(), "p": set()}
    for text in columns[2].split():
        match = _LINK.fullmatch(text)
        if not match:
            raise DataError(
                f"{place}: {text[:40]!r} is not a link; write 3-4 for a sure link or 3p4 for a "
                "possible one."
            )
        link = int(match[1]), int(match[3])
        if link[0] >= len(source) or link[1] >= len(target):
            raise DataError(
                f"{place}: the link {text} points outside the sentence; words count from 0."
            )
        links[match[2]].add(link)
    return GoldPair(
        source, target, frozenset(links["-"]), frozenset(links["-"] | links["p"]), place
    )
