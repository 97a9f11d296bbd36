"""Sentence pairs with links made by hand: the bundled sample, or the visitor's file."""

from __future__ import annotations

import streamlit as st

from transformer.text.links import GoldPair, read_gold
from transformer.text.pairs import Bounds
from ui.server import catalogue
from ui.server.uploads import read_upload

SAMPLE = catalogue.ROOT / "assets" / "sample" / "alignments.tsv"
LARGEST = 2 * 2**20
"""Most bytes of a file, packed and unpacked."""
BOUNDS = Bounds(total=LARGEST, line=64 * 2**10, lines=2_000)


@st.cache_resource(show_spinner=False)
def sample() -> list[GoldPair]:
    """The bundled pairs; none if the file is missing."""
    return read_gold(SAMPLE) if SAMPLE.is_file() else []


def parse(name: str, content: bytes) -> list[GoldPair]:
    """Reads the visitor's file.

    Raises:
        DataError: the file is too large, or not in the format; the message says where.
    """
    return read_upload(name, content, BOUNDS, read_gold)
