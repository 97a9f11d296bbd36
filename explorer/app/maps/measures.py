"""Measures of a visitor's sentence: what weights carried and did, and why a token was written."""

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

from explorer import lenses
from explorer.app.server.per_run import retraced
from explorer.app.server.stores import remembered
from explorer.app.server.view import View
from explorer.figures.base.labels import number
from explorer.lenses.measures.effect import WAYS, effect_in, effect_map, from_runs
from explorer.lenses.measures.stream import Carried, Tell, carried_map, shares
from transformer.config import AttentionKind, Head
from transformer.trace import LayerTrace
from transformer.view import AuditReport, HeadMap

MOST_CELLS_OF_MAP = 400  # whose effect is measured: some seconds, with a bar
MOST_TOKENS = (
    128  # longest side of a run explained by taking each token away: two minutes with `en-pt`
)


@remembered(64)
def of_run(
    opened: View, lens: Callable[..., Any], *arguments: Any, tell: Tell | None = None
) -> Any:
    """A measure of ``explorer.lenses`` for a run, made once and then kept.

    Raises as the measure.
    """
    translator = opened.source.load()
    first = translator if "translator" in signature(lens).parameters else translator.model
    return lens(first, retraced(opened), *arguments, **({"tell": tell} if tell else {}))


@remembered(64)
def audited(opened: View) -> AuditReport:
    """The audit of the run behind numbers that are drawn."""
    return retraced(opened).audit()


def of_effects(opened: View, effects: int, series: int = 1) -> AuditReport:
    """The audit of the run behind effects, which says from how many runs they are."""
    return replace(audited(opened), claim=from_runs(effects, series))


def beside_effects(report: AuditReport, effects: int, series: int = 1) -> AuditReport:
    """The audit of numbers of a trace beside effects, which are from runs of their own."""
    return replace(report, claim=f"from a {{}} trace, effects {from_runs(effects, series)}")


def _effects_in_place(opened: View, view: HeadMap) -> HeadMap:
    if view.mask.sum() > MOST_CELLS_OF_MAP:
        return view
    head = view.kind, view.layer, view.head
    return effect_map(view, of_run(opened, effect_in, *head, view.window))


IN_PLACE: dict[str, Callable[[View, HeadMap], HeadMap]] = {
    "carried": lambda opened, view: carried_map(
        view, of_run(opened, lenses.carried, view.kind, view.layer, view.head)
    ),
    "effect": _effects_in_place,
}
"""What the switch of the maps offers beside weights: a map with it, or as it is if it has too many
cells."""


def score_rule(record: LayerTrace) -> str:
    """How a layer's scores come from queries and keys: divided or not, with a bias or without."""
    score = "q·k"
    if record.bias is not None:
        score += " + bias of positions"
    if record.score.name != "scaled_dot":
        return f"{score}, which this model does not divide"
    if record.bias is None:
        return "q·k ÷ √d_k"
    if record.bias.divided:
        return f"({score}) ÷ √d_k"
    return "q·k ÷ √d_k + bias of positions"


def audit_of_cell(opened: View, kind: str, chosen: Head) -> AuditReport:
    """The audit of what ``of_cell`` says of a cell of a head."""
    own: Carried = of_run(opened, lenses.carried, kind, *chosen)
    return beside_effects(audited(opened).joined(own.audit), len(WAYS))


def of_cell(
    opened: View, kind: str, chosen: Head, place: tuple[int, int], step: int
) -> list[tuple[str, str, str]]:
    """Every measure of one cell, about the token of a step: name, number, unit."""
    (row, key) = place
    run = retraced(opened)
    head = run.head(kind, *chosen)
    carried = of_run(opened, lenses.carried, kind, *chosen)
    if not head.mask[row, key]:
        return [("weight", "0", "masked: the query may not see the key")]
    names = {"hidden": "key hidden", "zeroed": "value zeroed", "mean": "mean value"}
    record = run.trace.layer(kind, chosen[0])
    cuts = [(lenses.Cut(AttentionKind(kind), (key,), way, *chosen, row),) for way in WAYS]
    of_run_ = lenses.Effects(opened.source.load(), run)
    effects = of_run_.of(cuts)[:, of_run_.places.index(step)].tolist()
    return [
        ("score", number(float(head.scores[row, key]), ".3f"), score_rule(record)),
        ("weight", f"{head.weights[row, key]:.3f}", "share of the row"),
        ("length of its value, ‖x W_V W_O‖", f"{carried.values[key]:.3f}", "length"),
        ("carried, ‖α x W_V W_O‖", f"{carried.norms[row, key]:.3f}", "length"),
        ("‖b_V W_O‖, which every query gets", f"{carried.bias:.3f}", "length"),
        ("share carried", f"{shares(carried.norms)[row, key]:.3f}", "share of the row"),
        *(
            (
                f"Δ log p, {names[way]}",
                number(series, "+.3f") if series == series else "no other key",
                "nats",
            )
            for way, series in zip(WAYS, effects, strict=True)
        ),
    ]
