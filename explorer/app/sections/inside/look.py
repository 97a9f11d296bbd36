"""Subject of the sections of "Inside a head": the query under inspection, and the contents of a section."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from explorer.app.controls import export, plain
from explorer.app.controls.slots import Legend, SlotPicture, signed
from explorer.app.controls.text import alt
from explorer.app.sections.inside.notation import Notation
from explorer.app.server.view import View
from explorer.figures.base import captions, labels, style
from explorer.figures.base.strips import Strip, largest, strips_spec, vectors_spec
from explorer.lenses.inside.inside import InsideHead
from transformer.config import Site
from transformer.view import AuditReport, HeadView

EACH_ITS_OWN = "amber negative, purple positive, each line on its own scale"
ONE_SCALE = "amber negative, purple positive, one scale for all"


@dataclass(frozen=True)
class Look:
    """Subject of the sections."""

    opened: View  # the sentence
    inside: InsideHead  # the query of the head, with all its keys
    key: int  # the key under inspection, from 0
    start: int  # the first key that is drawn
    stop: int  # one past the last key that is drawn
    symbols: Notation  # how vectors and numbers are written

    @property
    def view(self) -> HeadView:
        """The row of the query, over all keys."""
        return self.inside.view

    @property
    def kind(self) -> str:
        """encoder, decoder or cross."""
        return str(self.view.kind)

    @property
    def site(self) -> Site:
        """Sides that this kind of attention connects."""
        return self.opened.translation.config.sites[self.view.kind]

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
        return labels.names(self.view.key_tokens, 6)[self.key]

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """d_model, d_k, heads, keys."""
        return (*self.inside.w_q.weight.shape, len(self.inside.outputs), len(self.inside.products))

    @property
    def output(self) -> np.ndarray:
        """(d_k,) the output of this head."""
        return self.inside.outputs[self.view.head]

    @property
    def step(self) -> str:
        """The row of the query."""
        row = labels.count(self.inside.row)
        return f"source token {row}" if self.kind == "encoder" else f"step {row}"

    def caption(
        self,
        quantity: str,  # what it shows
        step: bool = True,  # whether the picture depends on the query
    ) -> str:
        """Caption of a picture: its subject and its model."""
        view = self.view
        where = f"{captions.place(view)} · {self.step}" if step else captions.place(view)
        return f"{where} · {quantity} · {view.model} ({captions.norm_name(view.norm)})"


@dataclass(frozen=True)
class Figure:
    """A figure and everything that is said of it."""

    name: str  # unique on the page
    spec: dict[str, Any]  # the figure
    quantity: str  # what it shows, for the caption
    alt: str  # what it shows, for visitors who cannot see it
    legends: tuple[Legend, ...] = ()  # what its colours mean
    step: bool = True  # whether it depends on the query
    least: int = 0  # the smallest width in px; in less room it scrolls inside its own frame
    audit: AuditReport | None = None  # the checks of its numbers, if they are not those of the head
    computed: bool = True  # whether the model computed its numbers

    def checked(self, look: Look) -> AuditReport | None:
        """The checks of its numbers; None if the model did not compute them."""
        return (self.audit or look.inside.audit) if self.computed else None

    def picture(self, look: Look) -> SlotPicture:
        """The figure with its caption and the badge."""
        audit = self.checked(look)
        badge = None if audit is None else {**captions.badge(audit), "title": proof(audit)}
        caption = look.caption(self.quantity, self.step)
        return SlotPicture(self.name, self.spec, self.alt, caption, badge, self.legends, self.least)

    def exported(self, look: Look) -> export.Picture:
        """The figure for a file; its caption says what the colours mean."""
        colours = "".join(f" · colours: {legend.about}" for legend in self.legends)
        caption = look.caption(self.quantity, self.step) + colours
        return export.Picture(lambda: style.figure(self.spec), caption, self.checked(look))


@dataclass(frozen=True)
class Contents:
    """Contents of a section at a step."""

    texts: Mapping[str, str]  # by the place in the section; `text` is the main one
    # by the place in the section; `figures` are the main ones
    figures: Mapping[str, tuple[Figure, ...]] = field(default_factory=dict)


def length(vector: np.ndarray) -> str:
    """The length of a vector, as a note at the end of its strip."""
    return f"length {np.linalg.norm(vector):.2f}"


def noted(name: str, vector: np.ndarray, bold: bool = False) -> Strip:
    """A strip that says how long its vector is."""
    return Strip(name, vector, length(vector), bold)


def strips_figure(
    name: str,  # unique on the page
    rows: list[Strip],  # the vectors
    quantity: str,  # what they are, for the caption
    joint: bool = False,  # whether they share one scale
    computed: bool = True,  # whether the model computed them
) -> Figure:
    """Vectors as strips."""
    most = max(largest(row.values) for row in rows) if joint else None
    legend = signed(most, ONE_SCALE if joint else EACH_ITS_OWN)
    return Figure(name, strips_spec(rows, joint=joint), quantity, alt(rows), (legend,), computed=computed)


def keys_figure(
    look: Look, name: str, rows: np.ndarray, factors: np.ndarray, letters: tuple[str, str]
) -> Figure:
    """A vector of every key that is drawn, one per row; a hover text says what it gives times its factor."""
    shown = rows[look.keys]
    total, what = len(look.view.key_tokens), {"k": "keys", "v": "values"}[letters[0]]
    window = "" if len(shown) == total else f" · keys {labels.count(look.start)}–{look.stop} of {total}"
    return Figure(
        name,
        vectors_spec(shown, look.tokens, factors, letters, look.selected),
        f"{what}, one per row{window}",
        f"{what.capitalize()} of {len(shown)} tokens",
        (signed(largest(shown), ONE_SCALE),),
    )


def proof(audit: AuditReport) -> str:
    """The checks, in one line."""
    worst = max(check.value for check in audit.checks)
    return (
        f"{len(audit.checks)} checks compare these numbers with what the model recorded. The largest "
        f"difference, as a share of the largest number, is {labels.scientific(worst)}."
    )
