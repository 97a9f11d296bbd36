"""All heads of a kind in an order: by layer, by role, or by a number, and those that are left."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from explorer.lenses.heads.roles import MIXED, ROLES, Floats
from transformer.config import AttentionKind, Head
from transformer.run import Translation
from transformer.view import Window

Numbers = Sequence[Sequence[float]]
"""By layer and head; NaN where there is none."""


class HeadGroup(NamedTuple):
    """Heads that stand together."""

    name: str  # of a layer or a role; empty if all stand together
    heads: tuple[Head, ...]


def by_layer(size: Head) -> list[HeadGroup]:
    """Each layer with its heads, from the first."""
    layers, heads = size
    return [
        HeadGroup(f"L{layer + 1}", tuple((layer, head) for head in range(heads)))
        for layer in range(layers)
    ]


def by_role(roles: Sequence[Sequence[str]]) -> list[HeadGroup]:
    """Each role that a head has, with its heads, in the order of `ROLES`; mixed heads come last."""
    named = [*ROLES, MIXED]
    heads: dict[str, list[Head]] = {name: [] for name in named}
    for layer, row in enumerate(roles):
        for head, role in enumerate(row):
            heads[role or MIXED].append((layer, head))
    return [HeadGroup(name, tuple(heads[name])) for name in named if heads[name]]


def by_number(numbers: Numbers) -> list[HeadGroup]:
    """All heads, the one of the largest number first, and those without a number last."""
    places = [(layer, head) for layer, row in enumerate(numbers) for head in range(len(row))]

    def rank(place: Head) -> tuple[bool, float]:
        number = numbers[place[0]][place[1]]
        if number != number:
            return True, 0.0
        return False, -number

    return [HeadGroup("", tuple(sorted(places, key=rank)))]


def narrowed(groups: Sequence[HeadGroup], heads: Sequence[Head] | None) -> list[HeadGroup]:
    """The groups with some of their heads; None for all. A group that is empty is left out."""
    if heads is None:
        return list(groups)
    wanted = frozenset(heads)
    left = [
        group._replace(heads=tuple(head for head in group.heads if head in wanted))
        for group in groups
    ]
    return [group for group in left if group.heads]


def weights_of_cell(run: Translation, kind: str, row: int, key: int) -> Floats:
    """(layers, heads) the weight that each head's row puts on a key; places count from 0."""
    layers, _ = run.config.sizes[AttentionKind(kind)]
    cell = Window(row, row + 1, key, key + 1)
    weights = [run.layer_weights(kind, layer, cell)[:, 0, 0] for layer in range(layers)]
    return np.stack(weights).astype(np.float32)
