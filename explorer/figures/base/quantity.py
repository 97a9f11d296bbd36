"""What figures read off a head: what its numbers are, how rows are named, what it hides and sums to."""

from dataclasses import dataclass, replace

import numpy as np

from explorer.figures.base import labels
from transformer.view import HeadMap


@dataclass(frozen=True)
class Quantity:
    """A measure of the cells of a map, in words; colours always run from 0 to 1."""

    name: str  # for a control and a legend
    share: str  # what a number from 0 to 1 is
    caption: str  # what the numbers are, in full
    hover: str  # Plotly's text of a cell: `customdata[0]` is the share, `customdata[1]` the measure itself
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
        "what words carried, ‖α x W_V W_O‖ as shares of each row's sum, summed over the pieces of a key, "
        "averaged over those of a query",
        "What is long need not matter.",
    ),
    "effect": _EFFECT,
    "effect_on_all": replace(
        _EFFECT,
        caption=_EFFECT.caption.replace("|Δ log p|", "Σ|Δ log p| of all tokens of the translation", 1),
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
