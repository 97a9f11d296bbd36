"""What figures say of a head: what its numbers are, its rows' names, a sentence, a caption."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict

import numpy as np

from explorer.figures.base import labels, style
from explorer.figures.base.labels import percent
from transformer.text import words
from transformer.view import AuditReport, HeadMap

KIND_NAMES = {
    "encoder": "Encoder self-attention",
    "decoder": "Masked decoder self-attention",
    "cross": "Cross-attention",
}
NORMS = {"pre": "pre-norm", "post": "post-norm", "none": "no LayerNorm"}
"""Where LayerNorm stands, in words; a model of which that is not known has none of them."""
RESTS_FROM = 0.5
OUTSIDE_FROM = 0.005
MOST_NAMED = 8
"""Tokens of which a sentence gives the names."""
NO_EFFECT = 0.005
"""Changes of log p below this, in nats, are called none."""


@dataclass(frozen=True)
class Quantity:
    """A measure of the cells of a map, in words; colours always run from 0 to 1."""

    name: str  # for a control and a legend
    share: str  # what a number from 0 to 1 is
    caption: str  # what the numbers are, in full
    # Plotly's text of a cell: `customdata[0]` is the share, `customdata[1]` the measure itself
    hover: str
    words: str  # as `caption`, for merged pieces; empty if it is not of words
    limit: str  # one sentence on what the numbers do not say
    sums: bool = True  # whether rows sum to 1
    offered: bool = True  # whether a visitor may choose it


_EFFECT = Quantity(
    name="effect",
    share="share of the largest effect",
    caption="|Δ log p| when a key is hidden from this head and query, by running again, as a share "
    "of the largest on this map (or of 0.1 nats)",
    hover="Δ log p %{customdata[1]:+.3f} nats",
    words="",
    limit="Effects do not add up: another head may do the same work.",
    sums=False,
)
QUANTITIES = {
    "weight": Quantity(
        name="weight",
        share="weight",
        caption="weights",
        hover="weight %{customdata[0]:.3f}",
        words="weights of words, summed over the pieces of a key, averaged over those of a query",
        limit="A weight is a share, not how much it carried, nor how much it mattered.",
    ),
    "carried": Quantity(
        name="carried",
        share="share carried",
        caption="what keys carried, ‖α x W_V W_O‖, as shares of each row's sum",
        hover="share carried %{customdata[0]:.3f}",
        words="what words carried, ‖α x W_V W_O‖ as shares of each row's sum, summed over the "
        "pieces of a key, averaged over those of a query",
        limit="What is long need not matter.",
    ),
    "effect": _EFFECT,
    "effect_on_all": replace(
        _EFFECT,
        caption=_EFFECT.caption.replace("|Δ log p|", "Σ|Δ log p| of all tokens of the output", 1),
        hover="Σ|Δ log p| %{customdata[1]:.3f} nats",
        offered=False,
    ),
}

MEASURES = tuple(name for name, quantity in QUANTITIES.items() if quantity.offered)
"""The measures that a visitor chooses from."""


def model_name(model: str, norm: str) -> str:
    """A model in a caption, with where its LayerNorm stands if that is known."""
    if norm not in NORMS:
        return model
    return f"{model} ({NORMS[norm]})"


def kind_name(kind: str, title: str = "") -> str:
    """What the maps of a kind are called: by their own title, if they have one."""
    return title or KIND_NAMES[kind]


def quantity(view: HeadMap) -> Quantity:
    """What the numbers of a view are; weights if it does not say."""
    return QUANTITIES[getattr(view, "measure", "weight")]


def named(view: HeadMap) -> str:
    """ "read" or "predicted", the token that names rows: as the view says, else by its kind."""
    predicts = view.kind == "cross" and view.predicted_tokens is not None
    return str(getattr(view, "named", "predicted" if predicts else "read"))


def hidden(view: HeadMap) -> np.ndarray:
    """The weight of each row that lies on hidden columns; zeros if the view hides nothing."""
    mass = getattr(view, "hidden", None)
    if mass is None:
        return np.zeros(len(view.query_tokens), dtype=np.float32)
    return np.asarray(mass)


def cell_names(view: HeadMap) -> tuple[list[str], list[str]]:
    """The names of the rows and of the columns, in words."""
    return (
        labels.row_names(view.query_tokens, view.predicted_tokens),
        [f"key {name}" for name in labels.names(view.key_tokens)],
    )


def row_sums(view: HeadMap) -> list[str]:
    """The sum of each row: `1.00`, or with hidden columns `0.88 + 0.12`."""
    totals = view.weights.sum(1)
    aside = hidden(view)
    if not aside.any():
        return [f"{total:.2f}" for total in totals]
    return [f"{total:.2f} + {mass:.2f}" for total, mass in zip(totals, aside, strict=True)]


def quote(token: str) -> str:
    """A token as written inside a sentence."""
    return labels.shorten(labels.piece(token), 24)


def quote_first(token: str) -> str:
    """The first token of a text as written inside a sentence: nothing stands before it."""
    return labels.shorten(labels.display(token), 24)


def _opening(view: HeadMap, row: int) -> list[str]:
    """How a sentence about a row begins."""
    read = quote(view.query_tokens[row])
    if view.predicted_tokens is None:
        return ["For ", read]
    if named(view) == "predicted":
        return ["Predicting ", quote(view.predicted_tokens[row])]
    return ["Having read ", read]


def together_name(view: HeadMap, rows: Sequence[int], together: str) -> str:
    """Several rows that are read as one, in words: `mean of 2 rows: “The”, “books”`."""
    names = [f"“{_opening(view, row)[1]}”" for row in rows[:MOST_NAMED]]
    if len(rows) > MOST_NAMED:
        names.append(f"and {len(rows) - MOST_NAMED} more")
    return f"{together} of {len(rows)} rows: {', '.join(names)}"


def _head_of(view: HeadMap, role: str) -> str:
    """What a sentence calls the head."""
    name = labels.head_phrase(view.layer, view.head)
    return f"{name} ({role})" if role else name


def sentences(view: HeadMap, role: str = "") -> list[list[str]]:
    """One sentence about each row, with numbers, as alternating plain and emphasised parts."""
    head = _head_of(view, role)
    return [_sentence(view, row, head) for row in range(len(view.query_tokens))]


def _sentence(view: HeadMap, row: int, head: str) -> list[str]:
    opening = _opening(view, row)
    if not view.mask[row].any():
        return [*opening, f", {head} may attend to nothing: every key is masked."]
    if np.isnan(view.weights[row]).all():
        return [*opening, f", {head} has no number."]
    best = int(np.nanargmax(view.weights[row]))
    largest = float(view.weights[row, best])
    key = quote(view.key_tokens[best])
    match getattr(view, "measure", "weight"):
        case "weight":
            start = f", {head} puts {percent(largest)} of its weight on "
            return [*opening, start, key, f"{_remainder(view, row)}."]
        case "carried":
            share = f": {percent(largest)} of the summed lengths."
            return [*opening, f", {head} carries most from ", key, share]
        case "effect" | "effect_on_all":
            change = float(view.measured[row][best]) if view.measured is not None else 0.0
            summed = view.predicted_tokens is None
            return [*opening, *_effect(head, key, change, summed=summed)]
        case _:
            number = f": {quantity(view).share} {largest:.2f}."
            return [*opening, f", {head} has its largest number at ", key, number]


def _remainder(view: HeadMap, row: int) -> str:
    """Where the weight of a row lies that is on none of the keys, in brackets; empty for none."""
    aside = float(hidden(view)[row])
    total = 1.0
    if view.sums is not None:
        total = float(view.sums[row])
    with np.errstate(invalid="ignore"):  # an infinite weight of one's own, and another below 0
        left = total - float(view.weights[row].sum()) - aside
    lost = "is taken by the Gaussian" if getattr(view, "reach", 0) else "lies outside this window"
    shares = ((aside, "lies on hidden tokens"), (left, lost))
    texts = [f"{percent(share)} {where}" for share, where in shares if share > OUTSIDE_FROM]
    return f" ({', '.join(texts)})" if texts else ""


def _effect(head: str, key: str, change: float, *, summed: bool) -> list[str]:
    """How a sentence ends on the key that a head misses most: for a token, or in sum for all."""
    if abs(change) < NO_EFFECT:
        return [f", no single key of {head} makes a difference of {NO_EFFECT} nats."]
    if summed:
        in_sum = f": log p of the output's tokens changes by {change:.2f} nats in sum."
        return [f", {head} is missed most without ", key, in_sum]
    direction = "less" if change < 0 else "more"
    nats = f"{direction} probable, Δ log p {labels.number(change, '+.2f')} nats."
    return [f", most changes if {head} does not see ", key, f": the token gets {nats}"]


def sentences_off(view: HeadMap, role: str = "") -> list[list[str]]:
    """The sentences of a head whose output is replaced by zeros: its weights reach nothing."""
    ending = f", {_head_of(view, role)} is off: its output is 0, so these weights reach nothing."
    return [[*_opening(view, row), ending] for row in range(len(view.query_tokens))]


def notes(view: HeadMap) -> dict[int, str]:
    """Notes on single rows (of the window, from 0): weight on a special token, on hidden tokens."""
    notes = dict[int, str]()
    special = [group.start for group in words.piece_groups(view.key_tokens) if group.special]
    for row, (weights, aside) in enumerate(zip(view.weights, hidden(view), strict=True)):
        texts = list[str]()
        resting = [view.key_tokens[i] for i in special if weights[i] > RESTS_FROM]
        if resting and quantity(view) is QUANTITIES["weight"]:
            texts.append(f"over half of this row's weight lies on {resting[0]}, not on a word")
        if view.sums is not None and abs(view.sums[row] - 1) >= OUTSIDE_FROM:
            texts.append(f"this row sums to {view.sums[row]:.2f}, not to 1")
        if aside > 0:
            texts.append(f"{percent(float(aside))} of this row lies on hidden tokens")
        if texts:
            notes[row] = " · ".join(texts)
    return notes


def place(view: HeadMap) -> str:
    """Kind, layer and head, as captions begin."""
    return (
        f"{kind_name(view.kind, view.title)} · layer {labels.count(view.layer)} · head "
        f"{labels.count(view.head)}"
    )


def caption(
    view: HeadMap, scale: str | None = "linear", whole: tuple[int, int] | None = None
) -> str:
    """Kind, layer, head, step, quantity and model; the placeholder `{step}` is filled in later."""
    colour = "" if scale is None else f", colour from 0 to 1, {style.SCALE_NAMES[scale]}"
    numbers = f"{quantity_name(view)}{colour}{window_note(view.window, whole)}"
    return f"{place(view)}{{step}} · {numbers} · {model_name(view.model, view.norm)}"


def quantity_name(view: HeadMap) -> str:
    """Meaning of the numbers of a view."""
    merged = getattr(view, "merged", False)
    return quantity(view).words if merged else quantity(view).caption


def summary(view: HeadMap, links: int = 5) -> str:
    """The map in words, with its strongest links: the text alternative of the picture."""
    rows, keys = view.weights.shape
    order = np.argsort(-view.weights, axis=None, kind="stable")[:links]
    queries, names = cell_names(view)
    cells = [divmod(int(cell), keys) for cell in order if view.weights.flat[cell] > 0]
    strongest = "; ".join(f"{queries[i]}, {names[j]}: {view.weights[i, j]:.2f}" for i, j in cells)
    name = kind_name(view.kind, view.title)
    title = f"{name}, {labels.head_phrase(view.layer, view.head)}"
    return f"{title}: {rows} queries by {keys} keys. Strongest links: {strongest or 'none'}."


def row_summaries(view: HeadMap, links: int = 3) -> list[str]:
    """Every row in words, with its largest values: the text alternatives of its bars."""
    queries, keys = cell_names(view)
    summaries = []
    for name, row in zip(queries, view.weights, strict=True):
        largest = [j for j in np.argsort(-row, kind="stable")[:links] if row[j] > 0]
        values = "; ".join(f"{keys[j]}: {row[j]:.2f}" for j in largest)
        summaries.append(f"Largest of {name}: {values or 'none'}.")
    return summaries


def window_note(window: object, whole: tuple[int, int] | None = None) -> str:
    """Says which part of a long matrix is drawn; empty if all of it is drawn."""
    sides = ("query_start", "query_stop", "key_start", "key_stop")
    q0, q1, k0, k1 = (getattr(window, name) for name in sides)
    ends_last = max(q1, k1) < 64 if whole is None else (q1, k1) == whole
    if q0 == 0 and k0 == 0 and ends_last:
        return ""
    return f" · queries {labels.count(q0)}–{q1}, keys {labels.count(k0)}–{k1}"


class Badge(TypedDict):
    """Whether an audit passed, in a few words, and what stands behind it."""

    passed: bool
    text: str
    title: str
    waits: NotRequired[bool]  # whether a proof is still to come


CHECKING: Badge = {
    "waits": True,
    "passed": True,
    "text": "… checking",
    "title": "The picture is here before its proof, which is being made.",
}
"""Stands for a badge until the audit is done."""


def badge(audit: AuditReport, derived: bool = False) -> Badge:
    """The badge of an audit; that of a file says that its parts agree, since nothing else is known.

    Its title says what stands behind it: the basis, the largest errors, what was not checked, the
    changes.
    """
    nothing_failed = bool(audit.unchecked) and not _failed(audit)
    return {
        "passed": nothing_failed or bool(audit.passed),
        "text": _verdict(audit, derived),
        "title": _evidence(audit),
    }


def _failed(audit: AuditReport) -> list[str]:
    """The names of the checks that fail."""
    return [check.name for check in audit.checks if not check.passed]


def _verdict(audit: AuditReport, derived: bool) -> str:
    """The outcome of an audit in a few words, with the number of changes."""
    if audit.unchecked:
        if _failed(audit):
            return "✗ not as they were given"
        return f"○ {audit.unchecked}"
    proved = "consistent" if audit.imported else "verified"
    origin = "imported file, " if audit.imported else ""
    if not audit.passed:
        text = f"✗ {origin}{_denial(audit, proved)}"
    elif audit.claim:
        text = f"✓ {origin}{audit.claim.format(proved)}"
    elif derived:
        text = f"✓ {origin}from a {proved} trace"
    else:
        text = f"✓ {origin}{proved}"
    if audit.changes:
        text += f", with {labels.counted(len(audit.changes), 'change')}"
    if audit.passed and audit.skipped:
        text += f"; {' and '.join(audit.skipped)} not checked"
    return text


def _denial(audit: AuditReport, proved: str) -> str:
    """What is not so, of an audit that did not pass."""
    failed = _failed(audit)
    if failed and all(" sum to " in name for name in failed):
        return "does not sum up"
    return f"not {proved}"


_GIVEN = "These numbers were given as they are: no model computed them here."


def _evidence(audit: AuditReport) -> str:
    """What stands behind the outcome of an audit, in sentences."""
    failed = _failed(audit)
    rows = _largest(audit, "row sums")
    outputs = _largest(audit, "outputs")
    if audit.unchecked:
        texts = [_GIVEN, *audit.remarks]
    elif failed:
        texts = [f"These checks fail: {', '.join(dict.fromkeys(failed))}."]
    else:
        texts = [_basis(audit, measured=rows is not None), *audit.proofs]
    if rows is not None and outputs is not None:
        texts.append(
            f"Largest row-sum error {labels.scientific(rows)}; largest difference between "
            f"recomputed and used output {labels.scientific(outputs)}."
        )
    if audit.unmade:
        texts.append(f"Not checked, as the model is not here: {'; '.join(audit.unmade)}.")
    if audit.changes:
        texts.append(f"Changed in this run: {labels.without_starts('; '.join(audit.changes))}.")
    return " ".join(filter(None, texts))


def _largest(audit: AuditReport, name: str) -> float | None:
    """The largest value of the checks of a name; None without any."""
    return max((float(check.value) for check in audit.checks if check.name == name), default=None)


def _basis(audit: AuditReport, *, measured: bool) -> str:
    """What an audit compared: the numbers of a file, or what the model recorded, if measured."""
    if audit.imported:
        agrees = "its parts agree, but it cannot prove that a model computed them"
        return (
            "Recomputed from a file, which can only be checked against itself: "
            f"{agrees if audit.passed else 'a check fails'}. Its log-probabilities, the norms of "
            "its values, its type of numbers, and its model's name and hash are as recorded."
        )
    if not measured:
        return ""
    basis = "Recomputed from what the model recorded."
    if audit.placed:
        basis += " A second pass found every layer, head and step in its place."
    return basis
