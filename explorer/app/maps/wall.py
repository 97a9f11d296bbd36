"""The wall of all heads of a kind: pictures that scroll in their own box, sorted and left out.

A page puts `WALL` among the plots of its layout, `feeds` among its feeds, and draws `controls`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.page_values import WALL_ORDERS, Maps
from explorer.app.controls import pickers
from explorer.app.maps.looking import HeadSelection, badge_of_all
from explorer.app.server import per_run
from explorer.app.server.stores import remembered
from explorer.app.server.view import View
from explorer.app.shell import waiting
from explorer.figures.base import captions, labels
from explorer.lenses.heads import walls
from explorer.lenses.heads.roles import MIXED, ROLES, assign
from explorer.lenses.heads.walls import HeadGroup
from explorer.linked.view.feeds import colour_note, ranking_feed, wall_feed
from explorer.linked.view.home import WALL
from explorer.linked.view.wire import Feed, RankingFeed
from transformer.config import AttentionKind, Head

MANY = 96
"""From this many heads on, a page shows a wall in the place of one picture."""
SMALL_TILE, FULL_TILE = 24, 32
"""Most rows, and columns, of a tile of a large wall, and of another."""
PRINTED_TILE = 44
"""Px of a tile in an exported picture."""
MOST_CELLS = 40_000_000
"""Weights of all heads together from which roles are told; more take seconds, and gigabytes."""
MOST_EFFECTS = 60_000
"""Tokens that are read for all effects together: about a minute on one processor."""
_NAMES = {"layer": "layer", "role": "role", "weight": "weight on a key", "effect": "effect"}
_HELP = (
    "**Layer**: the model's order. **Role**: a measured pattern. **Weight on a key**: how much of "
    "the cursor's row lies on one key. **Effect**: how much less probable the token of this step "
    "is without the head, by running the model once for each head."
)


class _Order(NamedTuple):
    """How the heads stand, and why."""

    groups: Sequence[HeadGroup]
    numbers: Sequence[Sequence[str]]  # by layer and head, written under a tile
    words: str
    aligned: bool = False


def is_large(look: HeadSelection) -> bool:
    """Whether a kind has so many heads that one picture of all is too small to read."""
    layers, heads = look.opened.translation.config.sizes[look.kind]
    return layers * heads >= MANY


def feeds(look: HeadSelection, now: State) -> dict[str, Feed]:
    """The pictures, which stay while the visitor looks on, and how they stand, which is small."""
    opened = look.opened
    side = FULL_TILE
    if is_large(look):
        side = SMALL_TILE
    tiles = look.tiles(side)
    parts = [f"each tile is a head: queries down, keys across, {colour_note(now.scale)}"]
    tile = tiles[0][0]
    if tile.rows * tile.columns > 1:
        parts.append(f"each cell is the maximum over {tile.rows}×{tile.columns} cells")
    caption = " · ".join(parts)
    badge = badge_of_all(opened, look.kind)
    return {
        WALL: wall_feed(opened.key, look.kind, tiles, caption=caption, badge=badge),
        "ranking": ranking(look, now),
    }


def ranking(look: HeadSelection, now: State) -> RankingFeed:
    """How the heads stand for a state."""
    order = _order(look, now)
    names = roles(look)
    left = _heads_left(look, now)
    groups = walls.narrowed(order.groups, left)
    left_out = ""
    if left is not None:
        count = sum(len(group.heads) for group in groups)
        left_out = f", {count} of {sum(len(row) for row in order.numbers)} heads"
    notes = [
        [_note((layer, head), names, text) for head, text in enumerate(row)]
        for layer, row in enumerate(order.numbers)
    ]
    return ranking_feed(
        look.opened.key,
        groups,
        look.head,
        numbers=order.numbers,
        notes=notes,
        order=f"{order.words}{left_out}",
        aligned=order.aligned,
    )


def _note(head: Head, roles: Sequence[Sequence[str]], number: str) -> str:
    """What is said of a head at the pointer."""
    layer, place = head
    role = ""
    if roles:
        role = roles[layer][place]
    return " · ".join(filter(None, (labels.head_phrase(*head), role, number)))


def _order(look: HeadSelection, now: State) -> _Order:
    """The order that the visitor asked for; that of layers where it is not to be had."""
    size = look.opened.translation.config.sizes[look.kind]
    nothing = [[""] * size[1] for _ in range(size[0])]
    sort = sorted_by(look, now)
    if sort == "role":
        where = "in this text alone"
        if pickers.roles_of(look.opened.source, look.kind):
            where = "over many sentences"
        return _Order(walls.by_role(roles(look)), nothing, f"by role, measured {where}")
    if sort == "weight":
        row, key = cell(look, now)
        weights = walls.weights_of_cell(look.opened.translation, look.kind, row, key)
        name = captions.quote(look.opened.translation.labels(look.kind).keys[key])
        texts = [[f"{weight:.2f}" for weight in line] for line in weights]
        words = f"by the weight of the cursor's row on “{name}”, position {labels.count(key)}"
        return _Order(walls.by_number(weights.tolist()), texts, words)
    if sort == "effect":
        step = look.opened.predicted_at(look.cursor)
        assert step is not None
        effects = _effects(look.opened, look.kind, step)
        texts = [[labels.number(effect, "+.2f") for effect in line] for line in effects.tolist()]
        token = captions.quote(look.opened.translation.predictions[step].token)
        words = f"by what log p of “{token}” loses without the head, in nats"
        return _Order(walls.by_number((-effects).tolist()), texts, words)
    return _Order(walls.by_layer(size), nothing, "by layer", aligned=True)


def sorted_by(look: HeadSelection, now: State) -> str:
    """The order that is drawn: the one asked for, if this run has it."""
    sort = now.values(Maps).sort
    if sort not in offered(look):
        return "layer"
    return sort


def offered(look: HeadSelection) -> tuple[str, ...]:
    """The orders that a run has."""
    lacking = set[str]()
    if not roles(look):
        lacking.add("role")
    if look.measure != "weight":
        lacking.add("weight")
    if not _has_effects(look):
        lacking.add("effect")
    return tuple(order for order in WALL_ORDERS if order not in lacking)


def _has_effects(look: HeadSelection) -> bool:
    """Whether the effect of every head can be measured here in about a minute."""
    opened = look.opened
    layers, heads = opened.translation.config.sizes[look.kind]
    tokens = max(len(opened.translation.target_tokens), len(opened.translation.source_tokens))
    small = layers * heads * tokens <= MOST_EFFECTS
    predicts = bool(opened.translation.predictions)
    return small and predicts and opened.source.has_model and not opened.run_key.changes


@remembered(16)
def _effects(opened: View, kind: str, step: int) -> np.ndarray:
    """Δ log p of a step's token without each head of a kind, with a bar while it is measured."""
    from explorer.app.maps import measures  # PyTorch comes with it
    from explorer.lenses.measures.effect import head_effects

    layers, heads = opened.translation.config.sizes[kind]
    with waiting.progress(f"Running the model without each of {layers * heads} heads") as tell:
        effects: np.ndarray = measures.of_run(opened, head_effects, kind, step, tell=tell)
    return effects


def roles(look: HeadSelection) -> Sequence[Sequence[str]]:
    """The roles of all heads, by layer and head: by the model's survey, else in this run alone.

    Empty if neither is known, or a lesson will ask for one.
    """
    visit = session.visit()
    known = pickers.roles_of(look.opened.source, look.kind)
    if known or visit.silent is not None or visit.roleless:
        return known
    layers, heads = look.opened.translation.config.sizes[look.kind]
    rows, keys = look.lengths
    if layers * heads * rows * keys > MOST_CELLS:
        return []
    return _roles_here(look.opened, look.kind)


@remembered(64)
def _roles_here(opened: View, kind: str) -> list[list[str]]:
    """The roles that heads have in one run; an empty text for a mixed head.

    Empty if the run is too short for any statistic: one row says nothing.
    """
    grid = per_run.statistics(opened, kind)
    names = sorted({name for row in grid for head in row for name in head})
    if not names:
        return []
    means = {
        name: np.array([[head.get(name, np.nan) for head in row] for row in grid], np.float32)
        for name in names
    }
    names_of = assign(means, AttentionKind(kind))
    return np.where(names_of == MIXED, "", names_of).tolist()


def cell(look: HeadSelection, now: State) -> tuple[int, int]:
    """The cursor's row, and the key whose weight sorts the heads, from 0.

    In self-attention it is the chosen key, else the strongest of the chosen head.
    """
    row, column = look.cell
    if look.kind == AttentionKind.CROSS:
        return row, column
    chosen = now.values(Maps).key
    _, keys = look.lengths
    if chosen is not None:
        return row, min(chosen, keys - 1)
    weights = look.opened.translation.weights(look.kind, *look.head)[row]
    return row, int(np.argmax(weights))


def _heads_left(look: HeadSelection, now: State) -> list[Head] | None:
    """The heads that the visitor left; None for all, also if none of this model is meant."""
    only = now.values(Maps).only
    layers, heads = look.opened.translation.config.sizes[look.kind]
    if only is None:
        return None
    places = [(layer, head) for layer in range(layers) for head in range(heads)]
    name, _, number = only.partition("-")
    if name == "layer" and number:
        left = [place for place in places if labels.count(place[0]) == int(number)]
    else:
        names = roles(look)
        left = [place for place in places if names and (names[place[0]][place[1]] or MIXED) == only]
    return left or None


def controls(look: HeadSelection, now: State) -> None:
    """Draws what sorts the wall, what is left of it, and the key of the weights.

    Nothing while a lesson's question is open: the key would answer it.
    """
    if session.visit().silent is not None:
        return
    orders = offered(look)
    names = {order: _NAMES[order] for order in orders}
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Heads by", width="content")
        pickers.switch("sort", "Heads by", names, sorted_by(look, now), help=_HELP)
        _left(look, now)
        if sorted_by(look, now) == "weight" and look.kind != AttentionKind.CROSS:
            _key(look, now)


def _left(look: HeadSelection, now: State) -> None:
    """Draws the choice of one layer or one role."""
    layers, _ = look.opened.translation.config.sizes[look.kind]
    known = {role or MIXED for row in roles(look) for role in row}
    names = {"": "all heads"}
    names |= {role: f"only: {role}" for role in (*ROLES, MIXED) if role in known}
    names |= {f"layer-{layer}": f"only: layer {layer}" for layer in range(1, layers + 1)}
    only = now.values(Maps).only or ""
    if only not in names:
        only = ""
    take = partial(_take, "only")
    pickers.choose("only", "Heads that are shown", names, only, take, texts=True, width=220)


def _key(look: HeadSelection, now: State) -> None:
    """Draws the choice of the key whose weight sorts the heads."""
    tokens = labels.names(look.opened.translation.labels(look.kind).keys)
    _, chosen = cell(look, now)
    names: Mapping[int, str] = {
        key: f"key {labels.count(key)}: {name}" for key, name in enumerate(tokens)
    }
    pickers.choose("key", "Key", names, chosen, partial(_take, "key"), texts=True, width=220)


def _take(field: str, value: object) -> None:
    """Takes a value of the wall; an empty text is none."""
    if value == "":
        value = None
    session.change(**{field: value})
