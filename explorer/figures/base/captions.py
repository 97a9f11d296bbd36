"""Texts beside a picture: one sentence with numbers, a caption, and the audit badge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from explorer.figures.base import labels, style
from explorer.figures.base.bars import percent
from explorer.figures.base.quantity import QUANTITIES, quantity
from explorer.figures.base.shape import HeadLike, hidden, named

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
    def imported(self) -> bool: ...
    @property
    def changes(self) -> tuple[str, ...]: ...
    @property
    def placed(self) -> bool: ...
    @property
    def checks(self) -> Sequence[Any]: ...  # each with a name, the worst value and a limit
    @property
    def told(self) -> tuple[str, ...]: ...
    @property
    def unmade(self) -> tuple[str, ...]: ...
    @property
    def claim(self) -> str: ...


class CheckedHead(HeadLike, Protocol):
    """A head with its provenance."""

    @property
    def model(self) -> str: ...
    @property
    def norm(self) -> str: ...
    @property
    def audit(self) -> AuditLike: ...


def quote(token: str) -> str:
    """A token as written inside a sentence."""
    return labels.shorten(labels.piece(token), 24)


def _opening(view: HeadLike, row: int) -> list[str]:
    read = quote(view.query_tokens[row])
    if view.predicted_tokens is None:
        return ["For ", read]
    predicted = quote(view.predicted_tokens[row])
    return ["Predicting ", predicted] if named(view) == "predicted" else ["Having read ", read]


def sentence(
    view: HeadLike,  # the head
    row: int,  # the row of its window, from 0
    role: str = "",  # what the head does over many sentences, if that is known
) -> list[str]:
    """One sentence about a row, with numbers, as alternating plain and emphasised parts."""
    weights = view.weights[row]
    name = labels.head_phrase(view.layer, view.head) + (f" ({role})" if role else "")
    opening = _opening(view, row)
    if not view.mask[row].any():
        return [*opening, f", {name} may attend to nothing: every key is masked."]
    best = int(np.argmax(weights))
    on = quote(view.key_tokens[best])
    if (measure := getattr(view, "measure", "weight")) != "weight":
        return _MEASURED.get(measure, _other)(view, row, opening, name, on)
    aside = float(hidden(view)[row])
    outside = 1 - float(weights.sum()) - aside
    left = "lies outside this window" if not getattr(view, "reach", 0) else "is taken by the Gaussian"
    places = ((aside, "lies on hidden tokens"), (outside, left))
    told = [f"{percent(share)} {where}" for share, where in places if share > OUTSIDE_FROM]
    rest = f" ({', '.join(told)})." if told else "."
    return [*opening, f", {name} puts {percent(float(weights[best]))} of its weight on ", on, rest]


def _carried(view: HeadLike, row: int, opening: list[str], name: str, on: str) -> list[str]:
    share = percent(float(view.weights[row].max()))
    return [*opening, f", {name} carries most from ", on, f": {share} of the summed lengths."]


def _effect(view: HeadLike, row: int, opening: list[str], name: str, on: str) -> list[str]:
    measured: np.ndarray = view.measured[row]  # type: ignore[attr-defined]
    change = float(measured[int(np.argmax(view.weights[row]))])
    if abs(change) < NO_EFFECT:
        return [*opening, f", no single key of {name} makes a difference of {NO_EFFECT} nats."]
    if view.predicted_tokens is None:
        all_of_it = f": log p of the translation's tokens changes by {change:.2f} nats in sum."
        return [*opening, f", {name} is missed most without ", on, all_of_it]
    lost = "less" if change < 0 else "more"
    nats = f": the token gets {lost} probable, Δ log p {labels.number(change, '+.2f')} nats."
    return [*opening, f", most changes if {name} does not see ", on, nats]


def _other(view: HeadLike, row: int, opening: list[str], name: str, on: str) -> list[str]:
    told = f": {quantity(view).share} {float(view.weights[row].max()):.2f}."
    return [*opening, f", {name} has its largest number at ", on, told]


NO_EFFECT = 0.005
"""Changes of log p below this, in nats, are called none."""
_MEASURED: dict[str, Callable[[HeadLike, int, list[str], str, str], list[str]]] = {
    "carried": _carried,
    "effect": _effect,
    "effect_on_all": _effect,
}


def sentences(view: HeadLike, role: str = "") -> list[list[str]]:
    """`sentence` for every row of the window."""
    return [sentence(view, row, role) for row in range(len(view.query_tokens))]


def sentences_off(view: HeadLike, role: str = "") -> list[list[str]]:
    """The same for a head whose output is replaced by zeros: its weights are computed, and reach nothing."""
    name = labels.head_phrase(view.layer, view.head) + (f" ({role})" if role else "")
    off = f", {name} is off: its output is 0, so these weights reach nothing."
    return [[*_opening(view, row), off] for row in range(len(view.query_tokens))]


def notes(view: HeadLike) -> dict[int, str]:
    """Notes on single rows (of the window, from 0): weight on hidden tokens, weight on a special token."""
    told = {row: [text] for row, text in rests(view).items()}
    for row, mass in enumerate(hidden(view)):
        if mass > 0:
            told.setdefault(row, []).append(f"{percent(float(mass))} of this row lies on hidden tokens")
    return {row: " · ".join(texts) for row, texts in told.items()}


def rests(view: HeadLike) -> dict[int, str]:
    """Notes on the rows (of the window, from 0) that put over half their weight on a special token."""
    notes = {}
    special = [i for i, token in enumerate(view.key_tokens) if labels.is_special(token)]
    for row, weights in enumerate(view.weights if quantity(view) is QUANTITIES["weight"] else ()):
        resting = [i for i in special if weights[i] > RESTS_FROM]
        if resting:
            token = view.key_tokens[resting[0]]
            notes[row] = f"over half of this row's weight lies on {token}, not on a word"
    return notes


def norm_name(norm: str) -> str:
    """`pre`, `post` or `none` in words."""
    return "no LayerNorm" if norm == "none" else f"{norm}-norm"


def place(view: HeadLike) -> str:
    """Kind, layer and head, as captions begin."""
    return f"{KIND_NAMES[view.kind]} · layer {labels.count(view.layer)} · head {labels.count(view.head)}"


def caption(
    view: CheckedHead,  # the head
    # how weights become colours, one of `style.SCALES`; None if the picture has no colours for them
    scale: str | None = "linear",
    # number of queries and keys of the whole matrix; needed to recognise a window
    whole: tuple[int, int] | None = None,
) -> str:
    """Kind, layer, head, step, quantity and model; the placeholder `{step}` is filled in later."""
    colour = "" if scale is None else f", colour from 0 to 1, {style.SCALE_NAMES[scale]}"
    quantity = f"{quantity_name(view)}{colour}{window_note(view.window, whole)}"
    return f"{place(view)}{{step}} · {quantity} · {view.model} ({norm_name(view.norm)})"


def quantity_name(view: HeadLike) -> str:
    """Meaning of the numbers of a view."""
    return quantity(view).words if view.scores is None else quantity(view).caption


def summary(view: HeadLike, links: int = 5) -> str:
    """The map in words, with its strongest links: the text alternative of the picture."""
    rows, keys = view.weights.shape
    order = np.argsort(-view.weights, axis=None, kind="stable")[:links]
    names = labels.row_names(view.query_tokens, view.predicted_tokens), labels.key_names(view.key_tokens)
    cells = [divmod(int(cell), keys) for cell in order if view.weights.flat[cell] > 0]
    strongest = "; ".join(f"{names[0][i]}, {names[1][j]}: {view.weights[i, j]:.2f}" for i, j in cells)
    title = f"{KIND_NAMES[view.kind]}, {labels.head_phrase(view.layer, view.head)}"
    return f"{title}: {rows} queries by {keys} keys. Strongest links: {strongest or 'none'}."


def row_summaries(view: HeadLike, links: int = 3) -> list[str]:
    """Every row in words, with its largest values: the text alternatives of its bars."""
    names = labels.row_names(view.query_tokens, view.predicted_tokens), labels.key_names(view.key_tokens)
    largest = np.argsort(-view.weights, axis=1, kind="stable")[:, :links]
    values = (
        "; ".join(f"{names[1][j]}: {row[j]:.2f}" for j in order if row[j] > 0)
        for row, order in zip(view.weights, largest, strict=True)
    )
    return [f"Largest of {name}: {found or 'none'}." for name, found in zip(names[0], values, strict=True)]


def window_note(
    window: object,  # the part that is drawn
    # number of queries and keys of the whole matrix; if None, a side of 64 or more counts as a part
    whole: tuple[int, int] | None = None,
) -> str:
    """Says which part of a long matrix is drawn; empty if all of it is drawn."""
    q0, q1, k0, k1 = (
        getattr(window, name) for name in ("query_start", "query_stop", "key_start", "key_stop")
    )
    all_of_it = max(q1, k1) < 64 if whole is None else (q1, k1) == whole
    if q0 == 0 and k0 == 0 and all_of_it:
        return ""
    return f" · queries {labels.count(q0)}–{q1}, keys {labels.count(k0)}–{k1}"


def badge(
    audit: AuditLike,  # the checks of the trace
    # whether the picture shows values derived from the trace, not the model's own arrays
    derived: bool = False,
) -> dict[str, object]:
    """The audit badge: whether the audit passed, the text, and what stands behind it.

    A file can only be checked against itself, so its badge says no more than that its parts agree. A report
    whose checks prove less than which token, head, row and key holds a number makes a claim of its own.
    """
    origin, proved = ("imported file, ", "consistent") if audit.imported else ("", "verified")
    passed = audit.claim.format(proved) or (f"from a {proved} trace" if derived else proved)
    title = [_basis(audit), *audit.told, _errors(audit), _unmade(audit), _changed(audit)]
    return {
        "passed": bool(audit.passed),
        "text": (f"✓ {origin}{passed}" if audit.passed else f"✗ {origin}not {proved}") + _counted(audit),
        "title": " ".join(filter(None, title)),
    }


def _errors(audit: AuditLike) -> str:
    """The largest errors, if attention was recomputed."""
    rows, outputs = (_worst(audit, name) for name in ("row sums", "outputs"))
    if rows is None or outputs is None:
        return ""
    return (
        f"Largest row-sum error {labels.scientific(rows)}; "
        f"largest difference between recomputed and used output {labels.scientific(outputs)}."
    )


def _worst(audit: AuditLike, name: str) -> float | None:
    """The worst value of a check; None if it was not made."""
    return max((float(check.value) for check in audit.checks if check.name == name), default=None)


def _unmade(audit: AuditLike) -> str:
    """What could not be checked, in words."""
    return f"Not checked, as the model is not here: {'; '.join(audit.unmade)}." if audit.unmade else ""


def _counted(audit: AuditLike) -> str:
    """Number of changes in the run, in words."""
    count = len(audit.changes)
    return f", with {count} change{'s' * (count > 1)}" if count else ""


def _changed(audit: AuditLike) -> str:
    """The changes of the run, in words."""
    return f"Changed in this run: {'; '.join(audit.changes)}." if audit.changes else ""


def _basis(audit: AuditLike) -> str:
    """The basis of the checks, and their limits."""
    if audit.imported:
        agree = (
            "its parts agree, but it cannot prove that a model computed them"
            if audit.passed
            else "a check fails"
        )
        return (
            f"Recomputed from a file, which can only be checked against itself: {agree}. "
            "Its log-probabilities, the norms of its values, its type of numbers, and its model's name and "
            "hash are as recorded."
        )
    if _worst(audit, "row sums") is None:
        return ""
    placed = " A second pass found every layer, head and step in its place." * audit.placed
    return f"Recomputed from what the model recorded.{placed}"
