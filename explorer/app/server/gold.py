"""Sentence pairs with links made by hand: the bundled sample, or the visitor's file."""

from pathlib import Path

import streamlit as st

from explorer.app.server.source import Source
from explorer.app.server.uploads import read_upload
from explorer.lenses.words import languages
from explorer.lenses.words.links import GoldPair, read_gold
from transformer.text.pairs import ReadBounds

LARGEST = 2 * 2**20
"""Most bytes of a file, packed and unpacked."""
BOUNDS = ReadBounds(total=LARGEST, line=64 * 2**10, lines=2_000)


def sample(source: Source) -> list[GoldPair]:
    """The bundled pairs of a model's languages; none if the file is missing."""
    return sample_of(languages.FOLDER / data(source).alignments)


def data(source: Source) -> languages.Sample:
    """The files of a model's languages."""
    return languages.sample_of(source.path)


@st.cache_resource(show_spinner=False)
def sample_of(path: Path) -> list[GoldPair]:
    """The pairs of a file; none if it is missing."""
    return read_gold(path) if path.is_file() else []


def parse(name: str, content: bytes) -> list[GoldPair]:
    """Reads the visitor's file.

    DataError if the file is too large, or not in the format; the message says where.
    """
    return read_upload(name, content, BOUNDS, read_gold)
