"""What figures say of a head: what its numbers are, its rows' names, a sentence, a caption."""

from dataclasses import dataclass, replace
from typing import TypedDict

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
RESTS_FROM = 0.5
OUTSIDE_FROM = 0.005
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
    "effect",
    "share of the largest effect",
    "|Δ log p| when a key is hidden from this head and query, by running again, as a share of the "
    "largest on this map (or of 0.1 nats)",
    "Δ log p %{customdata[1]:+.3f} nats",
    "",
    "Effects do not add up: another head may do the same work.",
    sums=False,
)
QUANTITIES = {
    "weight": Quantity(
        "weight",
        "weight",
        "weights",
        "weight %{customdata[0]:.3f}",
        "weights of words, summed over the pieces of a key, averaged over those of a query",
        "A weight is a share, not how much it carried, nor how much it mattered.",
    ),
    "carried": Quantity(
        "carried",
        "share carried",
        "what keys carried, ‖α x W_V W_O‖, as shares of each row's sum",
        "share carried %{customdata[0]:.3f}",
        "what words carried, ‖α x W_V W_O‖ as shares of each row's sum, summed over the pieces "
        "of a key, averaged over those of a query",
        "What is long need not matter.",
    ),
    "effect": _EFFECT,
    "effect_on_all": replace(
        _EFFECT,
        caption=_EFFECT.caption.replace(
            "|Δ log p|", "Σ|Δ log p| of all tokens of the translation", 1
        ),
        hover="Σ|Δ log p| %{customdata[1]:.3f} nats",
        offered=False,
    ),
}

MEASURES = tuple(name for name, each in QUANTITIES.items() if each.offered)
"""The measures that a visitor chooses from."""


def quantity(view: HeadMap) -> Quantity:
    """What the numbers of a view are; weights if it does not say."""
    return QUANTITIES[getattr(view, "measure", "weight")]


def named(view: HeadMap) -> str:
    """ "read" or "predicted", the token that names rows: as the view says, else by its kind."""
    usual = "predicted" if view.kind == "cross" and view.predicted_tokens is not None else "read"
    return str(getattr(view, "named", usual))


def hidden(view: HeadMap) -> np.ndarray:
    """The weight of each row that lies on hidden columns; zeros if the view hides nothing."""
    mass = getattr(view, "hidden", None)
    return np.zeros(len(view.query_tokens), dtype=np.float32) if mass is None else np.asarray(mass)


def cell_names(view: HeadMap) -> tuple[list[str], list[str]]:
    """The names of the rows and of the columns, in words."""
    return (
        labels.row_names(view.query_tokens, view.predicted_tokens),
        [f"key {name}" for name in labels.names(view.key_tokens)],
    )


def row_sums(view: HeadMap) -> list[str]:
    """The sum of each row: `1.00`, or with hidden columns `0.88 + 0.12`."""
    aside = hidden(view)
    return [
        f"{total:.2f} + {mass:.2f}" if aside.any() else f"{total:.2f}"
        for total, mass in zip(view.weights.sum(1), aside, strict=True)
    ]


def quote(token: str) -> str:
    """A token as written inside a sentence."""
    return labels.shorten(labels.piece(token), 24)


def quote_first(token: str) -> str:
    """The first token of a text as written inside a sentence: nothing stands before it."""
    return labels.shorten(labels.display(token), 24)


def _opening(view: HeadMap, row: int, role: str) -> tuple[list[str], str]:
    """How a sentence about a row begins, and what it calls the head."""
    name = labels.head_phrase(view.layer, view.head) + (f" ({role})" if role else "")
    read = quote(view.query_tokens[row])
    if view.predicted_tokens is None:
        return ["For ", read], name
    predicted = quote(view.predicted_tokens[row])
    return ["Predicting ", predicted] if named(view) == "predicted" else [
        "Having read ",
        read,
    ], name


def sentence(view: HeadMap, row: int, role: str = "") -> list[str]:
    """One sentence about a row, with numbers, as alternating plain and emphasised parts."""
    opening, name = _opening(view, row, role)
    if not view.mask[row].any():
        return [*opening, f", {name} may attend to nothing: every key is masked."]
    weights = view.weights[row]
    measure = getattr(view, "measure", "weight")
    best = int(np.argmax(weights))
    on = quote(view.key_tokens[best])
    most = float(weights[best])
    if measure == "weight":
        aside = float(hidden(view)[row])
        left = (
            "lies outside this window"
            if not getattr(view, "reach", 0)
            else "is taken by the Gaussian"
        )
        places = ((aside, "lies on hidden tokens"), (1 - float(weights.sum()) - aside, left))
        rest = ", ".join(
            f"{percent(share)} {where}" for share, where in places if share > OUTSIDE_FROM
        )
        start = f", {name} puts {percent(most)} of its weight on "
        return [*opening, start, on, f" ({rest})." if rest else "."]
    if measure == "carried":
        return [
            *opening,
            f", {name} carries most from ",
            on,
            f": {percent(most)} of the summed lengths.",
        ]
    if measure in ("effect", "effect_on_all"):
        change = float(view.measured[row][best]) if view.measured is not None else 0.0
        if abs(change) < NO_EFFECT:
            return [*opening, f", no single key of {name} makes a difference of {NO_EFFECT} nats."]
        if view.predicted_tokens is None:
            all_of_it = f": log p of the translation's tokens changes by {change:.2f} nats in sum."
            return [*opening, f", {name} is missed most without ", on, all_of_it]
        nats = (
            f"{'less' if change < 0 else 'more'} probable, Δ log p {labels.number(change, '+.2f')} "
            "nats."
        )
        return [*opening, f", most changes if {name} does not see ", on, f": the token gets {nats}"]
    return [
        *opening,
        f", {name} has its largest number at ",
        on,
        f": {quantity(view).share} {most:.2f}.",
    ]


def sentences_off(view: HeadMap, role: str = "") -> list[list[str]]:
    """The sentences of a head whose output is replaced by zeros: its weights reach nothing."""
    openings = (_opening(view, row, role) for row in range(len(view.query_tokens)))
    off = "is off: its output is 0, so these weights reach nothing."
    return [[*opening, f", {name} {off}"] for opening, name in openings]


def notes(view: HeadMap) -> dict[int, str]:
    """Notes on single rows (of the window, from 0): weight on hidden tokens, weight on a special
    token."""
    found = dict[int, str]()
    special = [i for i, token in enumerate(view.key_tokens) if words.is_special(token)]
    for row, (weights, aside) in enumerate(zip(view.weights, hidden(view), strict=True)):
        on = [view.key_tokens[i] for i in special if weights[i] > RESTS_FROM]
        if on and quantity(view) is QUANTITIES["weight"]:
            found[row] = f"over half of this row's weight lies on {on[0]}, not on a word"
        if aside > 0:
            lies = f"{percent(float(aside))} of this row lies on hidden tokens"
            found[row] = f"{found[row]} · {lies}" if row in found else lies
    return found


def place(view: HeadMap) -> str:
    """Kind, layer and head, as captions begin."""
    return (
        f"{KIND_NAMES[view.kind]} · layer {labels.count(view.layer)} · head "
        f"{labels.count(view.head)}"
    )


def caption(
    view: HeadMap, scale: str | None = "linear", whole: tuple[int, int] | None = None
) -> str:
    """Kind, layer, head, step, quantity and model; the placeholder `{step}` is filled in later."""
    colour = "" if scale is None else f", colour from 0 to 1, {style.SCALE_NAMES[scale]}"
    quantity = f"{quantity_name(view)}{colour}{window_note(view.window, whole)}"
    return f"{place(view)}{{step}} · {quantity} · {view.model} ({NORMS[view.norm]})"


def quantity_name(view: HeadMap) -> str:
    """Meaning of the numbers of a view."""
    return quantity(view).words if view.scores is None else quantity(view).caption


def summary(view: HeadMap, links: int = 5) -> str:
    """The map in words, with its strongest links: the text alternative of the picture."""
    rows, keys = view.weights.shape
    order = np.argsort(-view.weights, axis=None, kind="stable")[:links]
    queries, names = cell_names(view)
    cells = [divmod(int(cell), keys) for cell in order if view.weights.flat[cell] > 0]
    strongest = "; ".join(f"{queries[i]}, {names[j]}: {view.weights[i, j]:.2f}" for i, j in cells)
    title = f"{KIND_NAMES[view.kind]}, {labels.head_phrase(view.layer, view.head)}"
    return f"{title}: {rows} queries by {keys} keys. Strongest links: {strongest or 'none'}."


def row_summaries(view: HeadMap, links: int = 3) -> list[str]:
    """Every row in words, with its largest values: the text alternatives of its bars."""
    queries, keys = cell_names(view)
    found = []
    for name, row in zip(queries, view.weights, strict=True):
        largest = [j for j in np.argsort(-row, kind="stable")[:links] if row[j] > 0]
        values = "; ".join(f"{keys[j]}: {row[j]:.2f}" for j in largest)
        found.append(f"Largest of {name}: {values or 'none'}.")
    return found


def window_note(window: object, whole: tuple[int, int] | None = None) -> str:
    """Says which part of a long matrix is drawn; empty if all of it is drawn."""
    sides = ("query_start", "query_stop", "key_start", "key_stop")
    q0, q1, k0, k1 = (getattr(window, name) for name in sides)
    all_of_it = max(q1, k1) < 64 if whole is None else (q1, k1) == whole
    if q0 == 0 and k0 == 0 and all_of_it:
        return ""
    return f" · queries {labels.count(q0)}–{q1}, keys {labels.count(k0)}–{k1}"


class Badge(TypedDict):
    """Whether an audit passed, in a few words, and what stands behind it."""

    passed: bool
    text: str
    title: str


def badge(audit: AuditReport, derived: bool = False) -> Badge:
    """The badge of an audit; that of a file says that its parts agree, since nothing else is known.

    Its title says what stands behind it: the basis, the largest errors, what was not checked, the
    changes.
    """
    origin, proved = ("imported file, ", "consistent") if audit.imported else ("", "verified")
    passed = audit.claim.format(proved) or (f"from a {proved} trace" if derived else proved)
    count = len(audit.changes)
    failed = [check.name for check in audit.checks if not check.passed]
    only_sums = bool(failed) and all(" sum to " in name for name in failed)
    denied = "does not sum up" if only_sums else f"not {proved}"
    text = f"✓ {origin}{passed}" if audit.passed else f"✗ {origin}{denied}"
    text += f", with {count} change{'s' * (count > 1)}" if count else ""
    if audit.passed and audit.skipped:
        text += f"; {' and '.join(audit.skipped)} not checked"
    rows, outputs = (
        max((float(check.value) for check in audit.checks if check.name == name), default=None)
        for name in ("row sums", "outputs")
    )
    if audit.imported:
        passed = "its parts agree, but it cannot prove that a model computed them"
        basis = (
            "Recomputed from a file, which can only be checked against itself: "
            f"{passed if audit.passed else 'a check fails'}. Its log-probabilities, the norms of "
            "its values, its type of numbers, and its model's name and hash are as recorded."
        )
    else:
        placed = " A second pass found every layer, head and step in its place." * audit.placed
        basis = "" if rows is None else f"Recomputed from what the model recorded.{placed}"
    texts = [basis, *audit.proofs]
    if failed:
        texts = [f"These checks fail: {', '.join(dict.fromkeys(failed))}."]
    if rows is not None and outputs is not None:
        texts.append(
            f"Largest row-sum error {labels.scientific(rows)}; largest difference between "
            f"recomputed and used output {labels.scientific(outputs)}."
        )
    if audit.unmade:
        texts.append(f"Not checked, as the model is not here: {'; '.join(audit.unmade)}.")
    if audit.changes:
        texts.append(f"Changed in this run: {labels.without_starts('; '.join(audit.changes))}.")
    return {"passed": bool(audit.passed), "text": text, "title": " ".join(filter(None, texts))}
