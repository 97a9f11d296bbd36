"""Sentence pairs with links made by hand: the bundled sample, or the visitor's file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import streamlit as st

from transformer.text.links import GoldPair, read_gold
from transformer.text.pairs import Bounds, DataError
from ui.server import catalogue

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
    if len(content) > LARGEST:
        raise DataError(
            f"The file has {len(content) / 2**20:.1f} MiB; at most {LARGEST // 2**20} MiB are allowed."
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("gold.tsv.gz" if name.endswith(".gz") else "gold.tsv")
        path.write_bytes(content)
        try:
            return read_gold(path, BOUNDS)
        except DataError as error:
            raise DataError(str(error).replace(str(path), "the file")) from error
