"""Texts and figures of a page that are silent while a lesson's question is open."""

import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import session
from explorer.figures.base.plot import NUMBER, quiet
from explorer.linked.view.silent import BLANK


def say(text: str) -> None:
    """Draws a sentence about the numbers of this run.

    While a question is open, a sign in its place.
    """
    st.markdown(text if session.visit().silent is None else f":gray[{BLANK}]")


def hushed(text: str) -> str:
    """A text; while a question is open, one that names a choice or holds a measured number is put
    off."""
    choices = session.visit().silent
    if choices is None or not (
        NUMBER.search(text) or any(choice.strip("“”") in text for choice in choices)
    ):
        return text
    return BLANK


def drawn(figure: go.Figure) -> go.Figure:
    """A figure; while a question is open, without its numbers."""
    return figure if session.visit().silent is None else go.Figure(quiet(figure.to_dict()))
