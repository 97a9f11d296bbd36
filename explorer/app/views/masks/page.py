"""The page of masks: scores, mask and weights of a head, other ways of masking, and a padded batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import chart, export, formula, options, panel, part, pickers, plain, say, seen
from explorer.app.maps.explorer import Scene, explorer, strips_only
from explorer.app.maps.looking import Looks, cells_of
from explorer.app.server import catalogue, per_run
from explorer.app.server.opened import Opened
from explorer.app.views.masks.padded import LONGER
from explorer.figures import heatmap
from explorer.figures.base import captions, labels
from explorer.figures.base.bars import percent
from explorer.figures.pages.masks import leak_bars, mask_map, padding_grid, score_map, weight_map
from explorer.lenses.what_if.masking import Leak, Masking, leak, masked_weights
from explorer.linked.view import window_around
from transformer import Translation, Window
from transformer.config import AttentionKind, Head
from transformer.text.words import PAD
from transformer.view import HeadView

WHAT_IF = "what if, not the model's computation"
_SIZE = 340
_SMALL = 262
_CELLS = 40
"""The largest number of rows and columns of a map here: the page holds up to nine maps."""
_WAYS = {"none": "no mask at all", "zero": "0 before the softmax", "after": "0 after the softmax"}
_WHY = {
    "": "Why −∞? $e^{-\\infty}$ is exactly 0, so a masked key takes no weight. The other keys share "
    "a weight of 1.",
    "none": "Without a mask, every key takes the weight that its score gives it, later tokens too. The mask "
    "holds this back.",
    "zero": "Why not 0? $e^0$ is 1, so a masked key counts like any other key with a score of 0 "
    "and takes weight from the other keys.",
    "after": "Why not after the softmax? The softmax has already given the masked keys their share. "
    "If that share is deleted, the row sums to less than 1.",
}
_SEEING = (
    "The left map shows the scores before any mask. The middle map shows the mask, a rule that knows only "
    "positions and padding. The right map shows the weights after mask and softmax. To see what another way "
    "of masking would let through, choose one. The result uses only this head's scores, and the true map "
    "stays beside it."
)
_RULE = r"M_{ij} = \begin{cases}0 & i \text{ may attend to } j\\ -\infty & \text{otherwise}\end{cases}"
_TRIANGLE = (
    "**Which triangle?** Here, as in the paper's QKᵀ, row *i* is the query and column *j* is the key. So the "
    "cells with *j* > *i* are masked: the upper triangle. Texts that write vectors as columns compute A = "
    "KᵀQ. There row *i* is the key and column *j* is the query, so the cells with *i* > *j* are masked: the "
    "lower triangle. Both hide the same pairs of tokens."
)
_SHIFTED = (
    "**Why may a row see its own column?** The decoder reads the target *shifted right*: `<s>` (or ◌, no "
    "token) comes first, and row *t* + 1 reads token *t*, which row *t* had to predict. So the diagonal "
    "holds the token that a row has just read, and never the one that it has to predict."
)
_UNMASKED = (
    "This model's decoder needs no causal mask: in place of self-attention it has a recurrent unit, which "
    "has read no later token."
)
_TITLES = {
    "encoder": "Padding mask of the encoder",
    "decoder": "Causal mask of the decoder",
    "cross": "Padding mask of cross-attention",
}
_REASONS = {
    "encoder": "No token may attend to `<pad>`. A sentence alone has no `<pad>`.",
    "decoder": "Row *t* may attend to the tokens read up to *t*. In decoding, later ones are not written "
    "yet; in training they are there, and this mask alone hides them.",
    "cross": "No target token may attend to the padding of the source. "
    "This mask is not causal: the source is complete.",
}
MOST_SENTENCES = 6
SHORT = "Thank you."
_SHORT = 8
"""The longest row of a batch, in tokens, that fits the width of a phone."""


@dataclass(frozen=True)
class MaskSubject:
    """Whose masks are shown: the visitor's translation, or one sentence of a batch."""

    of: Translation  # the translation or the sentence of a batch
    name: str  # the name of the subject in captions
    heads: dict[str, Head]  # layer and head (from 0), by kind
    # the cell (row and column, from 0) that a window must contain, by kind
    places: dict[str, tuple[int, int]]
    cursor: bool = False  # whether those cells are the cursor's; a batch is translated anew and has no cursor

    def head(self, kind: str) -> HeadView:
        """The chosen head of a kind, in a window of at most 40 x 40."""
        rows, columns = self.shape(kind)
        at = self.places[kind]
        window = Window(*window_around(rows, at[0], _CELLS), *window_around(columns, at[1], _CELLS))
        return self.of.head(kind, *self.heads[kind], window=window)

    def shape(self, kind: str) -> tuple[int, int]:
        """Rows and columns of the whole map of a kind."""
        source, target = len(self.of.source_tokens), len(self.of.target_tokens)
        return source if kind == "encoder" else target, target if kind == "decoder" else source

    def window_note(self, view: HeadView) -> str:
        """Says which part of the map a view holds; empty if it holds the whole map."""
        return captions.window_note(view.window, self.shape(view.kind))

    def row(self, view: HeadView) -> int | None:
        """The row of the cursor in a view, if the subject has a cursor."""
        return self.places[view.kind][0] - view.window.query_start if self.cursor else None

    def whole(self, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores, mask and weights of the whole head (queries, keys)."""
        trace = self.of.attention
        assert trace is not None
        head = (kind, *self.heads[kind])
        return trace.scores(*head), trace.mask(*head), trace.weights(*head)

    def rows(self, kind: str) -> tuple[str, ...]:
        """The tokens that label the rows of the whole map."""
        named = {"encoder": self.of.source_tokens, "decoder": self.of.decoder_input_tokens}
        return named.get(kind, self.of.target_tokens)


def show(opened: Opened) -> None:
    """Draws the page: a sentence alone has the cursor, a batch is translated anew and has none."""
    now = session.current()
    batched = now.view == "batch"
    usual = "encoder" if batched or "decoder" not in opened.kinds else "decoder"
    kind = now.kind if now.kind in opened.kinds else usual
    if batched:
        _padded(opened, kind)
        return

    def above(now: State, _looks: Looks) -> None:
        _controls(opened, _alone(opened, now), kind)

    def beside(now: State, _looks: Looks) -> None:
        subject = _alone(opened, now)
        _maps(subject, kind, _way(now))
        _objects(subject, opened.kinds)

    explorer(Scene(strips_only("masks", kind), opened, (kind,), above=above, beside=beside))


@part
def _padded(opened: Opened, kind: str) -> None:
    now = session.current()
    subject = _batch(opened, now)
    _controls(opened, subject, kind)
    _maps(subject, kind, _way(now))
    _objects(subject, opened.kinds)


def _way(now: State) -> str:
    return now.mask or next(iter(_WAYS))


def _batch(opened: Opened, now: State) -> MaskSubject:
    entry, index = member(opened, now)
    name = f"sentence {labels.count(index)} of the batch"
    return MaskSubject(entry, name, _heads(now), dict.fromkeys(catalogue.KINDS, (0, 0)))


def _alone(opened: Opened, now: State) -> MaskSubject:
    places = cells_of(opened, now)
    return MaskSubject(opened.translation, "your sentence", _heads(now), places, cursor=True)


def _heads(now: State) -> dict[str, Head]:
    return {kind: getattr(now, kind) for kind in catalogue.KINDS}


def _controls(opened: Opened, subject: MaskSubject, kind: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        pickers.kind_picker(kind, opened.kinds, part=True)
        with st.container(width=220):
            pickers.head_picker(kind, subject.heads[kind], opened.source)
        with st.container(width=205):
            named = {name: f"what if: {told}" for name, told in _WAYS.items()}
            pickers.choose("mask", "Another way of masking", named, _way(session.current()))
        positions = subject.of.config.positions
        score = subject.of.config.sites[AttentionKind(kind)].score
        told = f"{_SEEING} {formula.explained(kind, positions, score)}"
        written = formula.attention(kind, positions, True, score)
        seen(told, rf"{written},\quad {_RULE}")


def _maps(subject: MaskSubject, kind: str, way: str) -> None:
    view = subject.head(kind)
    scores, mask, weights = subject.whole(kind)
    say(f"{_found(leak(weights, mask), weights.size)} {_WHY['']}")
    with st.container(horizontal=True, gap="small"):
        _picture(
            "scores",
            "Scores, before the mask",
            lambda: score_map(view, view.scores, _SIZE),
            view,
            subject,
            "scores, scaled, before the mask",
        )
        _picture("mask", "The mask", lambda: mask_map(view, _SIZE), view, subject, "mask")
        _picture(
            "weights",
            "Weights, after mask and softmax",
            lambda: heatmap(view, _SIZE),
            view,
            subject,
            "weights, colour from 0 to 1",
        )
    _what_if(subject, view, Masking(way), (scores, mask))


def _found(found: Leak, cells: int) -> str:
    if not found.cells:
        return f"None of the {cells} cells is masked: a sentence alone has no padding."
    unequal = int(found.unequal.sum())
    small = found.zeros - found.cells
    besides = (
        f" ({small} of them not masked: weights too small for a 32-bit number round to 0)" if small else ""
    )
    return (
        f"**{found.cells} of {cells} cells are masked, and {found.zeros} of {cells} weights are exactly 0**"
        f"{besides}; {_unequal(unequal)} to 1."
    )


def _unequal(rows: int) -> str:
    if not rows:
        return "every row sums"
    return "1 row does not sum" if rows == 1 else f"{rows} rows do not sum"


def _what_if(
    subject: MaskSubject, view: HeadView, way: Masking, whole: tuple[np.ndarray, np.ndarray]
) -> None:
    scores, mask = whole
    weights = masked_weights(scores, mask, way)
    found = leak(weights, mask)
    rows = subject.rows(view.kind)
    say(f"{_WHY[way]} {_leaks(found, rows, subject.places[view.kind][0])}")
    seen, keys = view.window.queries, view.window.keys
    on_visible = (found.sums - found.masked)[seen]
    with st.container(horizontal=True, gap="small"):
        _picture(
            "leak",
            "What if: where each row's weight goes",
            lambda: leak_bars(view, on_visible, found.masked[seen], _SIZE),
            view,
            subject,
            f"weight per row · {WHAT_IF}",
            proven=False,
        )
        _picture(
            "what-if",
            f"What if: {_WAYS[way]}",
            lambda: weight_map(view, weights[seen, keys], _SIZE),
            view,
            subject,
            f"weights with {_WAYS[way]} · {WHAT_IF}",
            proven=False,
        )
        _picture(
            "true",
            "The model's own weights",
            lambda: heatmap(view, _SIZE),
            view,
            subject,
            "weights as the model computed them",
        )


def _leaks(found: Leak, rows: tuple[str, ...], cursor: int) -> str:
    """Says what a way of masking does to the rows of tokens; rows of `<pad>` do not count."""
    if not found.cells:
        return "Nothing is masked, so every way of masking gives the same weights."
    tokens = [i for i, token in enumerate(rows) if token != PAD]
    of = f"{len(tokens)} row{'s' * (len(tokens) != 1)}" + (" of tokens" if len(tokens) != len(rows) else "")
    if short := int(found.unequal[tokens].sum()):
        sums = _of_rows(found.sums, "sums to", rows, tokens, cursor)
        return (
            f"**{short} of {of} no longer sum to 1**: {sums}. "
            "Masked keys get no weight, but rows with many of them carry less; and their scores still divide "
            "the row, so what stands later changes it."
        )
    return (
        f"**{percent(float(found.masked[tokens].mean()))} of the weight leaks** to masked keys, on average "
        f"over {of}: {_of_rows(found.masked, 'loses', rows, tokens, cursor)}. Every row still sums to 1."
    )


def _of_rows(values: np.ndarray, verb: str, rows: tuple[str, ...], tokens: list[int], cursor: int) -> str:
    """The values of the first row, the row of the cursor and the last row, in words."""
    named = {cursor: "the row of the cursor"}
    named |= {tokens[0]: "the first row", tokens[-1]: "the last row"}
    told = [
        f"{name} ({plain(captions.quote(rows[i]))}) {verb} **{values[i]:.2f}**"
        for i, name in sorted(named.items())
    ]
    return ", ".join(told)


def _picture(
    name: str,
    title: str,
    draw: Callable[[], go.Figure],
    view: HeadView,
    subject: MaskSubject,
    quantity: str,
    proven: bool = True,
) -> None:
    phrase = labels.head_phrase(view.layer, view.head)
    note = subject.window_note(view)
    with st.container(width=_SIZE + 10, gap="xsmall"):
        st.markdown(f"**{title}**")
        panel(
            name,
            draw,
            f"{captions.place(view)} · {subject.name} · {quantity}{note} · {view.model}",
            key=f"masks.{name}",
            alt=f"{captions.KIND_NAMES[view.kind]} of {subject.name}, {phrase}: {quantity}",
            audit=view.audit if proven else None,
            width="stretch" if name == "leak" else "content",
            row=None if name == "leak" else subject.row(view),
        )


def _objects(subject: MaskSubject, kinds: Sequence[str]) -> None:
    if session.silent() is not None:  # these say in words which cells are masked
        say("")
        return
    st.markdown(f"#### The masks of {subject.name}")
    with st.container(horizontal=True, gap="small"):
        for kind, title in _TITLES.items():
            if kind in kinds:
                _object(f"object.{kind}", title, subject, subject.head(kind), _REASONS[kind])
        if not subject.cursor and "decoder" in kinds:
            _combined(subject, subject.head("decoder"))
    if subject.cursor:
        st.caption(
            "If there is padding, a mask can combine both rules, causal and padding. "
            "To see that mask, choose “in a batch”."
        )
    if "decoder" not in kinds:
        st.caption(_UNMASKED)
        return
    for column, text in zip(st.columns(2, gap="large"), (_TRIANGLE, _SHIFTED), strict=True):
        column.markdown(text)


def _object(name: str, title: str, subject: MaskSubject, view: HeadView, reason: str) -> None:
    rows, keys = view.mask.shape
    hidden, note = int((~view.mask).sum()), subject.window_note(view)
    with st.container(width=_SMALL, gap="xsmall"):
        st.markdown(f"**{title}**  \n{rows} × {keys} cells, {hidden} masked")
        alt = f"{title}: {rows} queries by {keys} keys, {hidden} cells masked"
        chart(f"masks.{name}", mask_map(view, _SMALL, hover=False), alt, width="content")
        st.caption(reason + note)
        caption = f"{title} · {hidden} of {rows * keys} cells masked{note} · {view.model}"
        export.picture(name, lambda: mask_map(view, _SIZE), caption, view.audit)


def _combined(subject: MaskSubject, view: HeadView) -> None:
    """Draws the mask that combines both rules; many implementations use it, this decoder does not need it."""
    is_token = np.arange(len(subject.of.target_tokens)) < len(subject.of.log_probs)
    both = view.mask & is_token[view.window.keys]
    differ = int((both != view.mask).sum())
    tokens = is_token[view.window.queries]
    among = int((both != view.mask)[tokens].sum())
    reason = (
        "This mask is derived; the model does not use it. The causal mask alone already hides padding at "
        f"the end from every token. The two masks differ in {differ} cells, {among or 'none'} of them in "
        "rows of tokens; rows of `<pad>` are ignored."
    )
    _object("object.combined", "Causal and padding combined", subject, replace(view, mask=both), reason)


def member(opened: Opened, now: State) -> tuple[Translation, int]:
    """Draws the sentences and their rectangle; returns the chosen one and its index."""
    given = (now.sentences or "").strip()
    text = given or "\n".join((opened.translation.source_text, LONGER, SHORT))
    st.text_area(
        f"The sentences of the batch, one per line, at most {MOST_SENTENCES}",
        text,
        height=104,
        **pickers.control("sentences", text, _take_sentences),
    )
    lines = [line for line in text.splitlines() if line.strip()][:MOST_SENTENCES]
    entries = per_run.batch(opened.source, tuple(lines))
    index = min(now.member or 0, len(entries) - 1)
    _rectangle(entries, index)
    _member_picker(lines, index)
    return entries[index], index


def _take_sentences(text: str) -> None:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > MOST_SENTENCES:
        st.toast(f"A batch here holds at most {MOST_SENTENCES} sentences. The others are left out.")
    session.change(sentences="\n".join(lines[:MOST_SENTENCES]) or None, member=None)


def _rectangle(entries: tuple[Translation, ...], index: int) -> None:
    mask = np.stack([entry.mask("cross", 0, 0)[0] for entry in entries])
    padding = int((~mask).sum())
    sentences = f"{len(entries)} sentence{'s' * (len(entries) != 1)}"
    st.markdown(
        f"{sentences} × {mask.shape[1]} tokens make a rectangle of {mask.size} positions; "
        f"**{padding} of them ({percent(padding / mask.size)}) are `<pad>`** and hatched."
    )

    panel(
        "batch",
        lambda: padding_grid([entry.source_tokens for entry in entries], mask, index),
        f"Source tokens of the batch · {padding} of {mask.size} positions padded · {entries[0].model}",
        alt=f"The batch of {sentences}: {padding} of {mask.size} positions are padding",
        scrolls=768 if mask.shape[1] > _SHORT else False,
    )


def _member_picker(lines: list[str], index: int) -> None:
    offered = {i: plain(text) for i, text in options.sentences(lines).items()}
    pickers.switch(
        "member",
        "Sentence of the batch",
        offered,
        index,
        lambda i: session.change(member=i or None),
        texts=True,
    )
