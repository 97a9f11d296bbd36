"""What the sections of "Inside a head" share: the query under inspection, and how to draw a section."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import plotly.graph_objects as go
import streamlit as st

from figures.base import captions, labels
from figures.base.captions import KIND_NAMES
from transformer.lenses.inside import InsideHead
from transformer.trace.view import HeadMap, HeadView
from ui.controls import export
from ui.controls.text import plain
from ui.server.opened import Opened

CONFIG = {"displayModeBar": False}


@dataclass(frozen=True)
class Look:
    """What the sections share.

    Attributes:
        opened: the sentence.
        inside: the query of the head, with all its keys.
        map: the head in the window around the cursor.
        key: the key under inspection, from 0.
        start: the first key that is drawn.
        stop: one past the last key that is drawn.
    """

    opened: Opened
    inside: InsideHead
    map: HeadMap
    key: int
    start: int
    stop: int

    @property
    def view(self) -> HeadView:
        """The row of the query, over all keys."""
        return self.inside.view

    @property
    def kind(self) -> str:
        """encoder, decoder or cross."""
        return str(self.view.kind)

    @property
    def keys(self) -> slice:
        """The keys that are drawn."""
        return slice(self.start, self.stop)

    @property
    def tokens(self) -> tuple[str, ...]:
        """Tokens of the keys that are drawn."""
        return self.view.key_tokens[self.keys]

    @property
    def selected(self) -> int:
        """The place of the key under inspection among the keys that are drawn."""
        return self.key - self.start

    @property
    def query_name(self) -> str:
        """The position of the query, named by its token, as Markdown."""
        token = f"“{plain(captions.quote(self.view.query_tokens[0]))}”"
        return token if self.kind == "encoder" else f"the position that reads {token}"

    @property
    def key_name(self) -> str:
        """The token of the key under inspection, as Markdown."""
        return f"“{plain(captions.quote(self.view.key_tokens[self.key]))}”"

    @property
    def key_label(self) -> str:
        """The name of the key under inspection, short enough for a figure."""
        return labels.names(self.view.key_tokens, 9)[self.key]

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """d_model, d_k, heads, keys."""
        return (*self.inside.w_q.weight.shape, len(self.inside.outputs), len(self.inside.products))

    def where(self) -> str:
        """The kind, layer, head and row of the query."""
        row, view = labels.count(self.inside.row), self.view
        step = f"source token {row}" if self.kind == "encoder" else f"step {row}"
        phrase = f"layer {labels.count(view.layer)} · head {labels.count(view.head)}"
        return f"{KIND_NAMES[self.kind]} · {phrase} · {step}"

    def caption(self, quantity: str) -> str:
        """What a picture shows, and of which model."""
        return f"{self.where()} · {quantity} · {self.view.model} ({captions.norm_name(self.view.norm)})"


Drawn = dict[str, export.Picture]
"""The figures of a section by name, for the export."""


def draw(
    look: Look,
    to: Drawn,
    name: str,
    make: Callable[[], go.Figure],
    quantity: str,
    alt: str,
) -> None:
    """Draws a figure of the model's own numbers, with its caption and the badge.

    Args:
        look: the query under inspection.
        to: the figures of the section; the new figure joins them.
        name: the name of the figure, unique on the page.
        make: draws the figure.
        quantity: what the figure shows, for the caption.
        alt: what the figure shows, for visitors who cannot see it.
    """
    st.plotly_chart(make(), key=f"inside.{name}", alt=alt, config=CONFIG)
    caption, badge = look.caption(quantity), captions.badge(look.inside.audit)
    st.caption(plain(f"{caption} · {badge['text']}"), help=proof(look.inside))
    to[name] = export.Picture(make, caption, look.inside.audit)


def proof(inside: InsideHead) -> str:
    """What was checked, in one line."""
    worst = max(check.value for check in inside.audit.checks)
    return (
        f"{len(inside.audit.checks)} checks compare this page's numbers with what the model recorded. The "
        f"largest difference, as a share of the largest number, is {worst:.1e}."
    )


@contextmanager
def section(number: int, title: str, text: str, *formulas: str) -> Iterator[Drawn]:
    """Draws a numbered step: words, formulas and export at the left, the figures at the right."""
    st.divider()
    left, right = st.columns([1, 2], gap="medium")
    with left:
        st.markdown(f"##### {number} · {title}")
        for formula in formulas:
            st.latex(formula)
        st.markdown(text)
    drawn: Drawn = {}
    with right:
        yield drawn
    with left:
        export.pictures(f"inside-{number}", drawn)


def raised(number: int) -> str:
    """Writes a number as a superscript."""
    return str(number).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
