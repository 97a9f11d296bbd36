"""The page of masks: scores, mask and weights of a head, other ways of masking, and a padded batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from figures import captions, heatmap, labels
from figures.bars import percent
from figures.heatmap import row_tokens
from figures.masks import leak_bars, mask_map, padding_grid, score_map, weight_map
from transformer import Translation, Window
from transformer.batch import BatchEntry
from transformer.capture import HeadView
from transformer.mask_variants import Leak, Masking, leak, masked_weights
from transformer.tokenizer import PAD
from ui import export, frame, models, state, widgets
from ui.batch_view import LONGER
from ui.explorer import chosen, place
from ui.linked_view import window_around
from ui.widgets import Opened

MOST_SENTENCES = 6
SHORT = "Thank you."
WHAT_IF = "what if, not the model's computation"
_SIZE = 350
_CELLS = 40
"""Most rows and columns of a map here: there are up to nine on the page."""
_KINDS = {"encoder": "encoder", "decoder": "masked decoder", "cross": "cross"}
_WAYS = {
    "": "−∞ before the softmax (the model)",
    "zero": "0 before the softmax",
    "after": "0 after the softmax",
}
_WHY = {
    "": "Why −∞: e^−∞ is exactly 0, so a masked key takes no weight, and the keys that remain share 1.",
    "zero": "Why not 0: e^0 is 1, so a masked key counts like any key with a score of 0 "
    "and takes weight from the rest.",
    "after": "Why not afterwards: the softmax has already given the masked keys their share, "
    "and what is then deleted is missing from the row.",
}


@dataclass(frozen=True)
class Subject:
    """Whose masks are shown: the visitor's translation, or one sentence of a batch.

    Attributes:
        of: it.
        name: what it is called in captions.
        places: for each kind the cell that a window must hold.
    """

    of: Translation | BatchEntry
    name: str
    places: dict[str, tuple[int, int]]

    def head(self, kind: str) -> HeadView:
        """The chosen head of a kind, in a window of at most 40 x 40."""
        source, target = len(self.of.source_tokens), len(self.of.target_tokens)
        rows = source if kind == "encoder" else target
        columns = target if kind == "decoder" else source
        at = self.places[kind]
        window = Window(*window_around(rows, at[0], _CELLS), *window_around(columns, at[1], _CELLS))
        return self.of.head(kind, *chosen(kind), window=window)

    def whole(self, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores, mask and weights of the whole head (queries, keys)."""
        trace = self.of.attention
        assert trace is not None
        head = (kind, *chosen(kind))
        return trace.scores(*head), trace.mask(*head), trace.weights(*head)

    def rows(self, kind: str) -> tuple[str, ...]:
        """What labels the rows of the whole map."""
        named = {"encoder": self.of.source_tokens, "decoder": self.of.decoder_input_tokens}
        return named.get(kind, self.of.target_tokens)


def show(opened: Opened) -> None:
    """Draws the page."""
    _page(opened)


@st.fragment
def _page(opened: Opened) -> None:
    frame.menu()
    batched = state.current().view == "batch"
    subject = _batch(opened) if batched else _alone(opened)
    if subject is None:
        return
    kind = state.current().kind or ("encoder" if batched else "decoder")
    _controls(opened, kind)
    _maps(subject, kind)
    _objects(subject)


def _alone(opened: Opened) -> Subject:
    places = {kind: place(opened, kind) for kind in models.KINDS}
    return Subject(opened.translation, "your sentence", places)


# --- the batch ----------------------------------------------------------------------------------------------


def _batch(opened: Opened) -> Subject | None:
    now = state.current()
    text = now.sentences or "\n".join((opened.translation.source_text, LONGER, SHORT))
    st.text_area(
        f"The sentences of the batch, one a line, at most {MOST_SENTENCES}",
        text,
        height=104,
        **widgets.control("sentences", text, _take_sentences),
    )
    lines = [line for line in text.splitlines() if line.strip()][:MOST_SENTENCES]
    try:
        entries = models.batch(opened.asked.model, tuple(lines))
    except ValueError as error:
        st.error(frame.plain(str(error)), icon=":material/error:")
        return None
    member = min(now.member or 0, len(entries) - 1)
    _rectangle(entries, member)
    _member_picker(lines, member)
    return Subject(
        entries[member], f"sentence {labels.count(member)} of the batch", dict.fromkeys(models.KINDS, (0, 0))
    )


def _take_sentences(text: str) -> None:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > MOST_SENTENCES:
        st.toast(f"A batch here holds {MOST_SENTENCES} sentences; the rest is left out.")
    state.change(sentences="\n".join(lines[:MOST_SENTENCES]) or None, member=None)


def _rectangle(entries: tuple[BatchEntry, ...], member: int) -> None:
    mask = np.stack([entry.source_mask for entry in entries])
    padding = int((~mask).sum())
    st.markdown(
        f"{len(entries)} sentences × {mask.shape[1]} tokens make a rectangle of {mask.size} places; "
        f"**{padding} of them ({percent(padding / mask.size)}) are `<pad>`**, hatched."
    )

    def draw() -> go.Figure:
        return padding_grid([entry.source_tokens for entry in entries], mask, member)

    st.plotly_chart(
        draw(),
        key="masks.batch",
        config={"displayModeBar": False},
        alt=f"The batch of {len(entries)} sentences: {padding} of {mask.size} places are padding",
    )
    caption = f"Source tokens of the batch · {padding} of {mask.size} places padded · {entries[0].model}"
    export.picture("batch", draw, caption)


def _member_picker(lines: list[str], member: int) -> None:
    options = list(range(len(lines)))
    st.segmented_control(
        "Sentence of the batch",
        options,
        default=member,
        required=True,
        format_func=lambda i: frame.plain(f"{labels.count(i)} · {labels.shorten(lines[i], 24)}"),
        label_visibility="collapsed",
        **widgets.control("member", member, lambda i: state.change(member=i or None)),
    )


# --- scores, mask, weights ----------------------------------------------------------------------------------


def _controls(opened: Opened, kind: str) -> None:
    kinds, head, ways, why = st.columns([2.1, 1.5, 1.7, 1.4], vertical_alignment="bottom")
    with kinds:
        st.segmented_control(
            "Attention",
            list(_KINDS),
            default=kind,
            required=True,
            format_func=_KINDS.__getitem__,
            label_visibility="collapsed",
            **widgets.control("kind", kind, lambda name: state.change(kind=name)),
        )
    with head:
        widgets.head_picker(kind, opened.asked.model)
    way = state.current().mask or ""
    with ways:
        st.selectbox(
            "How the mask acts",
            list(_WAYS),
            index=list(_WAYS).index(way),
            format_func=_WAYS.__getitem__,
            label_visibility="collapsed",
            **widgets.control("mask", way, lambda name: state.change(mask=name or None)),
        )
    with why:
        widgets.seen("What am I seeing?", _SEEING, _FORMULA)


_SEEING = (
    "Left: the scores, before any mask. Middle: the mask, a rule that knows places and padding "
    "only. Right: the weights after mask and softmax. Choose another way of masking to see what it "
    "would let through: it reworks this head's scores only, and the true map stays beside it."
)
_FORMULA = (
    r"\mathrm{softmax}\!\left(\frac{QK^{\top}}{\sqrt{d_k}} + M\right),\quad "
    r"M_{ij} = \begin{cases}0 & i \text{ may attend to } j\\ -\infty & \text{otherwise}\end{cases}"
)


def _maps(subject: Subject, kind: str) -> None:
    view = subject.head(kind)
    scores, mask, weights = subject.whole(kind)
    way = state.current().mask or ""
    st.markdown(_found(leak(weights, mask), weights.size) + (f" {_WHY['']}" if not way else ""))
    columns = st.columns(3)
    with columns[0]:
        _picture(
            "scores",
            lambda: score_map(view, view.scores, _SIZE),
            view,
            subject,
            "scores, scaled, before the mask",
        )
    with columns[1]:
        _picture("mask", lambda: mask_map(view, _SIZE), view, subject, "mask, hatched = masked")
    with columns[2]:
        _picture("weights", lambda: heatmap(view, _SIZE), view, subject, "weights, colour from 0 to 1")
    if way:
        _what_if(subject, view, Masking(way), (scores, mask))


def _found(found: Leak, cells: int) -> str:
    if not found.cells:
        return f"None of the {cells} cells is masked: one sentence alone has no padding."
    unequal = int(found.unequal.sum())
    small = found.zeros - found.cells
    besides = f" ({small} more of them by rounding: too small for a 32-bit number)" if small else ""
    return (
        f"**{found.cells} of {cells} cells are masked, and {found.zeros} of {cells} weights are exactly 0**"
        f"{besides}; "
        f"{f'{unequal} rows do not sum' if unequal else 'every row sums'} to 1."
    )


def _what_if(subject: Subject, view: HeadView, way: Masking, whole: tuple[np.ndarray, np.ndarray]) -> None:
    scores, mask = whole
    weights = masked_weights(scores, mask, way)
    found = leak(weights, mask)
    rows = subject.rows(view.kind)
    st.markdown(f"{_WHY[way]} {_leaks(found, rows, subject.places[view.kind][0])}")
    bars, reworked, true = st.columns(3)
    seen, keys = view.window.queries, view.window.keys
    with bars:
        height = _SIZE if len(rows) <= 24 else 480
        on_visible = (found.sums - found.masked)[seen]
        _picture(
            "leak",
            lambda: leak_bars(row_tokens(view), view.kind, on_visible, found.masked[seen], height),
            view,
            subject,
            f"weight per row · {WHAT_IF}",
            proven=False,
        )
    with reworked:
        quantity = f"weights with {_WAYS[way]} · {WHAT_IF}"
        _picture(
            "what-if",
            lambda: weight_map(view, weights[seen, keys], _SIZE),
            view,
            subject,
            quantity,
            proven=False,
        )
    with true:
        _picture("true", lambda: heatmap(view, _SIZE), view, subject, "weights as the model computed them")


def _leaks(found: Leak, rows: tuple[str, ...], cursor: int) -> str:
    """What a way of masking does to the rows of tokens; rows of `<pad>` do not count."""
    if not found.cells:
        return "With nothing masked, every way gives the same weights."
    tokens = [i for i, token in enumerate(rows) if token != PAD]
    of = f"{len(tokens)} " + ("rows" if len(tokens) == len(rows) else "rows of tokens")
    if short := int(found.unequal[tokens].sum()):
        sums = _of_rows(found.sums, "sums to", rows, tokens, cursor)
        return (
            f"**{short} of {of} no longer sum to 1**: {sums}. "
            "Nothing leaks, but rows with many masked keys carry less."
        )
    return (
        f"**{percent(float(found.masked[tokens].mean()))} of the weight leaks** to masked keys, a mean over "
        f"{of}: {_of_rows(found.masked, 'loses', rows, tokens, cursor)}. Every row still sums to 1."
    )


def _of_rows(values: np.ndarray, verb: str, rows: tuple[str, ...], tokens: list[int], cursor: int) -> str:
    """The values of the first row, the cursor's, and the last."""
    named = {tokens[0]: "the first row", cursor: "the row of the cursor", tokens[-1]: "the last row"}
    told = [
        f"{name} ({frame.plain(captions.quote(rows[i]))}) {verb} **{values[i]:.2f}**"
        for i, name in sorted(named.items())
    ]
    return ", ".join(told)


def _picture(
    name: str,
    draw: Callable[[], go.Figure],
    view: HeadView,
    subject: Subject,
    quantity: str,
    proven: bool = True,
) -> None:
    phrase = labels.head_phrase(view.layer, view.head)
    st.plotly_chart(
        draw(),
        width="content",
        key=f"masks.{name}",
        config={"displayModeBar": False},
        alt=f"{captions.KIND_NAMES[view.kind]} of {subject.name}, {phrase}: {quantity}",
    )
    place = f"layer {labels.count(view.layer)} · head {labels.count(view.head)}"
    note = captions.window_note(view.window)
    caption = f"{captions.KIND_NAMES[view.kind]} · {place} · {subject.name} · {quantity}{note} · {view.model}"
    badge = captions.badge(view.audit)
    st.caption(
        f"{caption} · {badge['text']}" if proven else caption, help=str(badge["title"]) if proven else None
    )
    export.picture(name, draw, caption, view.audit if proven else None)


# --- the masks as objects -----------------------------------------------------------------------------------


def _objects(subject: Subject) -> None:
    st.markdown(f"#### The masks of {subject.name}")
    shown = [("encoder", "Padding mask of the encoder"), ("decoder", "Causal mask of the decoder")]
    shown.append(("cross", "Padding mask of cross-attention"))
    columns = st.columns(4 if isinstance(subject.of, BatchEntry) else 3)
    for column, (kind, title) in zip(columns, shown, strict=False):
        with column:
            view = subject.head(kind)
            _object(f"object.{kind}", title, view, _REASONS[kind])
    if isinstance(subject.of, BatchEntry):
        with columns[-1]:
            _combined(subject.of, subject.head("decoder"))


_REASONS = {
    "encoder": "No token may attend to `<pad>`. One sentence alone has none.",
    "decoder": "Row *t* may attend to the tokens read up to *t*: what comes later was not written yet.",
    "cross": "The padding of the source, seen from the decoder. Nothing is causal: all of it is there.",
}


def _object(name: str, title: str, view: HeadView, reason: str) -> None:
    rows, keys = view.mask.shape
    hidden = int((~view.mask).sum())
    st.markdown(f"**{title}**  \n{rows} × {keys} cells, {hidden} masked")
    st.plotly_chart(
        mask_map(view, 270, hover=False),
        width="content",
        key=f"masks.{name}",
        config={"displayModeBar": False},
        alt=f"{title}: {rows} queries by {keys} keys, {hidden} cells masked",
    )
    st.caption(reason + captions.window_note(view.window))
    caption = (
        f"{title} · {hidden} of {rows * keys} cells masked{captions.window_note(view.window)} · {view.model}"
    )
    export.picture(name, lambda: mask_map(view, 330), caption, view.audit)


def _combined(entry: BatchEntry, view: HeadView) -> None:
    """Causal and padding at once: what many implementations pass, and this decoder can do without."""
    both = view.mask & entry.target_mask[view.window.keys]
    differ = int((both != view.mask).sum())
    tokens = entry.target_mask[view.window.queries]
    among = int((both != view.mask)[tokens].sum())
    reason = (
        "Derived, not used by this model: the causal mask alone hides padding at the end from every token. "
        f"The two differ in {differ} cells, {among} of them in rows of tokens; rows of `<pad>` are ignored."
    )
    _object("object.combined", "Causal and padding combined", replace(view, mask=both), reason)
