"""The way back of a token in words, and as places and lines with names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from figures.base import labels
from figures.base.captions import quote
from figures.base.labels import number
from figures.pages.way_back import Place, WayLine
from transformer.runs.translation import Translation

if TYPE_CHECKING:  # these import PyTorch
    from lenses.measures.stream import Writer
    from lenses.measures.way_back import Way, WayBack, WayGraph, WayNode

TITLES = ("logit", "written by", "read at", "written there by", "source words")
_SHORT = {"cross_attention": "cross", "self_attention": "self", "feed_forward": "ff"}
_RESTS = {1: "all else", 2: "others, biases", 3: "all else", 4: "others, biases"}


def strongest(run: Translation, found: WayBack, bold: str = "", text: Callable[[str], str] = str) -> str:
    """The three strongest ways; ``text`` escapes tokens, ``bold`` stands around numbers."""

    def token(tokens: tuple[str, ...], at: int) -> str:
        return f"“{text(quote(tokens[at]))}”"

    def told(way: Way) -> str:
        value = f"({bold}{number(way.value, '+.2f')}{bold})"
        if way.writer is None:
            return f"{writer(way.head)} ← {token(run.decoder_input_tokens, way.position)} {value}"
        ends = [writer(way.head), token(run.source_tokens, way.position), writer(way.writer)]
        if way.writer.head is not None and way.word is not None:
            ends.append(token(run.source_tokens, way.word))
        return f"{' ← '.join(ends)} {value}"

    return f"Its strongest single ways through heads: {'; '.join(map(told, found.ways[:3]))}."


def writer(each: Writer | None) -> str:
    """`cross 6.3`, `ff 2`, `token`."""
    assert each is not None
    what, layer, head = each
    places = ".".join(str(at + 1) for at in (layer, head) if at is not None)
    return f"{_SHORT.get(what, what)} {places}".strip()


def places(run: Translation, picture: WayGraph, logit: str) -> list[Place]:
    """The places of a picture with their names; ``logit`` is that of what is split."""
    return [Place(each.column, _name(run, each, logit), each.value) for each in picture.nodes]


def lines(picture: WayGraph) -> list[WayLine]:
    """The lines between them."""
    return [WayLine(each.start, each.end, each.value) for each in picture.edges]


def _name(run: Translation, node: WayNode, logit: str) -> str:
    if node.rest:
        return "other heads" if node.rest == "heads" else _RESTS[node.column]
    if node.column == 0:
        return logit
    if node.column == 1:
        return writer(node.writer)
    tokens = run.decoder_input_tokens if node.prefix else run.source_tokens
    name = labels.piece(tokens[node.position or 0])
    if node.column == 3:
        return f"{writer(node.writer)} at {name}"
    return f"{name} (written)" if node.prefix else name
