"""What is said beside a picture: one sentence with its numbers, a caption, the audit badge."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from figures import labels
from figures.bars import percent
from figures.shape import HeadLike

KIND_NAMES = {
    "encoder": "Encoder self-attention",
    "decoder": "Masked decoder self-attention",
    "cross": "Cross-attention",
}
RESTS_FROM = 0.5
OUTSIDE_FROM = 0.005


class AuditLike(Protocol):
    """The result of checking a trace."""

    @property
    def passed(self) -> bool: ...
    @property
    def row_sum_error(self) -> float: ...
    @property
    def output_error(self) -> float: ...


class CheckedHead(HeadLike, Protocol):
    """A head with its provenance."""

    @property
    def model(self) -> str: ...
    @property
    def norm(self) -> str: ...
    @property
    def audit(self) -> AuditLike: ...


def quote(token: str) -> str:
    """A token as it is written inside a sentence."""
    return labels.shorten(labels.display(token), 24)


def _opening(view: HeadLike, row: int) -> list[str]:
    read = quote(view.query_tokens[row])
    if view.predicted_tokens is None:
        return ["For ", read]
    predicted = quote(view.predicted_tokens[row])
    return ["Predicting ", predicted] if view.kind == "cross" else ["Having read ", read]


def sentence(view: HeadLike, row: int) -> list[str]:
    """One sentence about a row, with numbers: plain and emphasised parts in turn.

    Args:
        view: the head.
        row: the row of its window, from 0.
    """
    weights = view.weights[row]
    name = labels.head_phrase(view.layer, view.head)
    opening = _opening(view, row)
    if not view.mask[row].any():
        return [*opening, f", {name} may attend to nothing: every key is masked."]
    best = int(np.argmax(weights))
    on = quote(view.key_tokens[best])
    outside = max(0.0, 1 - float(weights.sum()))
    rest = f" ({percent(outside)} lies outside this window)." if outside > OUTSIDE_FROM else "."
    return [*opening, f", {name} puts {percent(float(weights[best]))} of its weight on ", on, rest]


def sentences(view: HeadLike) -> list[list[str]]:
    """`sentence` for every row of the window."""
    return [sentence(view, row) for row in range(len(view.query_tokens))]


def rests(view: HeadLike) -> dict[int, str]:
    """Says which rows (by position in the sentence, from 0) put over half their weight on a special token."""
    notes = {}
    special = [i for i, token in enumerate(view.key_tokens) if labels.is_special(token)]
    for row, weights in enumerate(view.weights):
        resting = [i for i in special if weights[i] > RESTS_FROM]
        if resting:
            notes[view.window.query_start + row] = f"here this head rests on {view.key_tokens[resting[0]]}"
    return notes


def norm_name(norm: str) -> str:
    """`pre` or `post` in words."""
    return f"{norm}-norm"


def caption(view: CheckedHead) -> str:
    """Kind, layer, head, step, quantity and model; `{step}` is filled in where the step is known."""
    place = f"layer {labels.count(view.layer)} · head {labels.count(view.head)}"
    quantity = f"weights, colour from 0 to 1{window_note(view.window)}"
    return f"{KIND_NAMES[view.kind]} · {place}{{step}} · {quantity} · {view.model} ({norm_name(view.norm)})"


def window_note(window: object) -> str:
    """Says which part of a long matrix is drawn; empty for a short sentence."""
    q0, q1, k0, k1 = (
        getattr(window, name) for name in ("query_start", "query_stop", "key_start", "key_stop")
    )
    if q0 == 0 and k0 == 0 and max(q1, k1) < 64:
        return ""
    return f" · queries {labels.count(q0)}–{q1}, keys {labels.count(k0)}–{k1}"


def badge(audit: AuditLike) -> dict[str, object]:
    """The audit badge: passed, its text, and the figures behind it."""
    title = (
        f"Recomputed from what the model recorded. Largest row-sum error {audit.row_sum_error:.1e}; "
        f"largest difference between recomputed and used output {audit.output_error:.1e}."
    )
    return {
        "passed": bool(audit.passed),
        "text": "✓ verified" if audit.passed else "✗ not verified",
        "title": title,
    }
