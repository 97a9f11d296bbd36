"""Sentence pairs with links made by hand: the bundled sample, or the visitor's file."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from lab.models.corpora import USUAL, LanguageData, data_of
from transformer.text.links import GoldPair, read_gold
from transformer.text.pairs import ReadBounds
from ui.server import catalogue
from ui.server.source import Source
from ui.server.uploads import read_upload

FOLDER = catalogue.ROOT / "assets" / "sample"
LARGEST = 2 * 2**20
"""Most bytes of a file, packed and unpacked."""
BOUNDS = ReadBounds(total=LARGEST, line=64 * 2**10, lines=2_000)


def sample(source: Source) -> list[GoldPair]:
    """The bundled pairs of a model's languages; none if the file is missing."""
    return sample_of(FOLDER / data(source).own_gold)


def data(source: Source) -> LanguageData:
    """The files of a model's languages."""
    return USUAL if source.path is None else data_of(source.path)


@st.cache_resource(show_spinner=False)
def sample_of(path: Path) -> list[GoldPair]:
    """The pairs of a file; none if it is missing."""
    return read_gold(path) if path.is_file() else []


def parse(name: str, content: bytes) -> list[GoldPair]:
    """Reads the visitor's file.

    Raises:
        DataError: the file is too large, or not in the format; the message says where.
    """
    return read_upload(name, content, BOUNDS, read_gold)
