"""The picker of sentence pairs with links made by hand."""

from __future__ import annotations

from typing import Any

import streamlit as st

from explorer.app.address import session
from explorer.app.controls import options, pickers
from explorer.app.server import examples
from explorer.app.server.gold import LARGEST, parse, sample
from explorer.app.server.source import Source
from explorer.figures.base import labels
from explorer.lenses.words.links import GoldPair
from transformer.text.pairs import DataError


def picker(
    source: Source,  # the model, or the open file
    now: str | None,  # the pair on the screen, written like the value `gold` of the state
) -> None:
    """Offers the pairs; a chosen pair forces its target through the model and brings its links."""
    with st.popover("Open links made by hand", type="tertiary", icon=":material/fact_check:"):
        _choice("sample", "The bundled sample (Tatoeba, links made by hand)", sample(source), now)
        st.file_uploader(
            "Your own file, one pair per line: source, tab, target, tab, links such as 0-0 1p2 (from 0)",
            type=["tsv", "txt", "gz"],
            max_upload_size=LARGEST // 2**20,
            **pickers.control("gold.upload", None, _take_file),
        )
        _choice("file", "The pairs of your file", session.opened_gold(), now)


def _take_file(file: Any) -> None:
    """Reads a file once, when the visitor uploads it."""
    if file is None:
        return
    try:
        session.keep_gold(parse(file.name, file.getvalue()))
    except DataError as error:
        session.notice(str(error))


def _choice(origin: str, label: str, pairs: list[GoldPair], now: str | None) -> None:
    if not pairs:
        return
    offered = options.pairs(pair.source for pair in pairs)
    number = int(now.removeprefix(f"{origin}-")) - 1 if now and now.startswith(f"{origin}-") else None
    number = number if number in offered else None
    pickers.choose(
        f"gold.{origin}",
        label,
        offered,
        number,
        lambda i: None if i is None else take(origin, i, pairs[i]),
        texts=True,
        labelled=True,
    )


def take(origin: str, number: int, pair: GoldPair) -> None:
    """Puts a pair on the screen: its source, its target (forced), and its links."""
    links = frozenset((i, j, (i, j) in pair.sure) for i, j in pair.possible | pair.sure)
    texts: dict[str, Any] = {"text": " ".join(pair.source), "target": " ".join(pair.target)}
    texts |= {"sentence": examples.whole(texts["text"])}
    session.change(**{**session.FRESH, **texts, "pairs": links, "gold": f"{origin}-{labels.count(number)}"})
