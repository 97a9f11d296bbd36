"""Kinds of attention that a page needs, and what it says if the model lacks one."""

from collections.abc import Sequence

import streamlit as st

from explorer.app.controls import inform, plain
from explorer.app.server.source import Source
from explorer.figures.base.captions import KIND_NAMES

PAGES = {
    "encoder": "pages/encoder_self_attention.py",
    "decoder": "pages/decoder_self_attention.py",
    "cross": "pages/cross_attention.py",
}
"""The page of each kind of attention."""


def tell_lack(
    source: Source,  # the model, or the open file
    needs: Sequence[str],  # the kinds of attention that a page can show; none if it shows more
) -> bool:
    """Says in a sentence that a model lacks all that the page shows, and leads to what it has.

    Returns:
        Whether the model lacks all of them. A damaged model is reported when its sentence is
            opened.
    """
    try:
        has = source.sizes
    except (ValueError, OSError):
        return False
    if not needs or any(kind in has for kind in needs):
        return False
    inform(plain(sentence(source, needs)))
    _lead_to_kinds(source)
    return True


def tell_no_output(source: Source) -> bool:
    """Says in a sentence that a model writes nothing, if so, and leads to what it has.

    Returns:
        Whether it writes nothing.
    """
    if source.writes:
        return False
    inform(
        plain(
            "This part shows an output that is written token by token, which "
            f"{source.name} does not have: it only reads its text. Choose another model on the "
            "left."
        )
    )
    _lead_to_kinds(source)
    return True


def _lead_to_kinds(source: Source) -> None:
    """Links to the pages of the kinds of attention that a model has."""
    for kind in source.sizes:
        st.page_link(PAGES[kind], label=KIND_NAMES[kind], icon=":material/arrow_forward:")


def has(source: Source | None, kind: str) -> bool:
    """Whether a model has a kind of attention.

    A model that is not there or damaged is taken to have all.
    """
    try:
        return source is None or kind in source.sizes
    except (ValueError, OSError):
        return True


def sentence(
    source: Source,  # the model, or the open file
    lacking: Sequence[str],  # the kinds of attention that it lacks, at least one
) -> str:
    """Kinds of attention that a model lacks, its own instead, and the way out."""
    kinds = list(source.sizes)
    has = f"its only attention is {_names(kinds)}"
    if len(kinds) > 1:
        has = f"it has {_names(kinds)}"
    return (
        f"This part shows {_names(lacking)}, which {source.name} does not have: {has}. "
        "Choose another model on the left."
    )


def _names(kinds: Sequence[str]) -> str:
    names = [KIND_NAMES[kind].lower() for kind in kinds]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
