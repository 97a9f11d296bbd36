"""Sentence pairs with links made by hand: the bundled sample, or a file of the visitor's."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import streamlit as st

from figures import labels
from transformer.alignment import GoldPair, read_gold
from transformer.data import Bounds, DataError
from ui import models, state, widgets

SAMPLE = models.ROOT / "assets" / "sample" / "alignments.tsv"
LARGEST = 2 * 2**20
"""Most bytes of a file, packed and unpacked."""
BOUNDS = Bounds(total=LARGEST, line=64 * 2**10, lines=2_000)


@st.cache_resource(show_spinner=False)
def sample() -> list[GoldPair]:
    """The bundled pairs; none where the file is missing."""
    return read_gold(SAMPLE) if SAMPLE.is_file() else []


def parse(name: str, content: bytes) -> list[GoldPair]:
    """Reads a file of the visitor's.

    Raises:
        DataError: the file is too large, or not of the format; the message says where.
    """
    if len(content) > LARGEST:
        raise DataError(
            f"The file has {len(content) / 2**20:.1f} MB; at most {LARGEST // 2**20} MB are read."
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("gold.tsv.gz" if name.endswith(".gz") else "gold.tsv")
        path.write_bytes(content)
        try:
            return read_gold(path, BOUNDS)
        except DataError as error:
            raise DataError(str(error).replace(str(path), "the file")) from error


def picker() -> None:
    """Offers the pairs: choosing one forces its target through the model and takes over its links."""
    with st.popover("open gold links", type="tertiary", icon=":material/fact_check:"):
        _choice("sample", "The bundled sample (Tatoeba, links made by hand)", sample())
        st.file_uploader(
            "Your own file, one pair a line: source, tab, target, tab, links such as 0-0 1p2 (from 0)",
            type=["tsv", "txt", "gz"],
            max_upload_size=LARGEST // 2**20,
            **widgets.control("gold.upload", None, _take_file),
        )
        _choice("file", "The pairs of your file", state.opened_gold())


def _take_file(file: Any) -> None:
    """Reads a file once, when it arrives."""
    if file is None:
        return
    try:
        state.keep_gold(parse(file.name, file.getvalue()))
    except DataError as error:
        state.notice(str(error))


def _choice(origin: str, label: str, pairs: list[GoldPair]) -> None:
    if not pairs:
        return
    now = state.current().gold
    options = [None, *range(len(pairs))]
    number = int(now.removeprefix(f"{origin}-")) - 1 if now and now.startswith(f"{origin}-") else None
    number = number if number in options else None

    def name(i: int | None) -> str:
        if i is None:
            return "choose a pair"
        return f"{labels.count(i)} · {labels.shorten(' '.join(pairs[i].source), 60)}"

    st.selectbox(
        label,
        options,
        index=options.index(number),
        format_func=name,
        **widgets.control(
            f"gold.{origin}", number, lambda i: None if i is None else take(origin, i, pairs[i])
        ),
    )


def take(origin: str, number: int, pair: GoldPair) -> None:
    """Puts a pair on the screen: its source, its target forced, its links."""
    links = frozenset((i, j, (i, j) in pair.sure) for i, j in pair.possible | pair.sure)
    texts = {"text": " ".join(pair.source), "target": " ".join(pair.target)}
    state.change(**{**state.FRESH, **texts, "pairs": links, "gold": f"{origin}-{labels.count(number)}"})
