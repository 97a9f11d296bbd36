"""What a page says while it waits for PyTorch or for a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from transformer.hub.files import size
from ui.controls.text import plain
from ui.server import catalogue, memory
from ui.shell import frame

_STARTING = "PyTorch and the model are still loading, because the server has just started."


def loads(name: str) -> str:
    """Says what takes so long if a model is not in memory."""
    if not catalogue.loading().done:
        return _STARTING
    needed, free = memory.of_model(catalogue.directory(name)), memory.available()
    return f"Loading {plain(name)}: it needs {size(needed)} of memory, {size(free)} is free"


@contextmanager
def while_loading() -> Iterator[None]:
    """Says why it takes so long while what is inside waits for PyTorch."""
    if catalogue.loading().done:
        yield
        return
    with st.spinner(_STARTING):
        yield


@contextmanager
def for_pytorch(title: str) -> Iterator[None]:
    """Waits before the imports of a page that needs PyTorch, and then runs the page again from its start.

    Args:
        title: the title of the page.
    """
    if not catalogue.loading().done:
        frame.open_page(title)
        with while_loading():
            catalogue.loading().wait()
        st.rerun()
    yield
