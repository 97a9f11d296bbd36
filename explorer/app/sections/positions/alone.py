"""One positional encoding by itself: tables, curves, biases, by formula or read from its twin."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import streamlit as st
import torch

from explorer.app.address import State, session
from explorer.app.address.encodings import ENCODINGS
from explorer.app.address.page_values import Maps, Positions
from explorer.app.controls import inform, part, pickers
from explorer.app.sections.positions import (
    TITLES,
    USUAL,
    draw,
    fitted,
    stack_switch,
    twin,
    twins_measured,
)
from explorer.app.shell import frame
from explorer.figures.base import labels
from explorer.figures.pages.positions import lines, table_map
from transformer.config import ModelConfig, Side, TransformerConfig
from transformer.encodings import (
    BiasRule,
    PositionalEncoding,
    make_positions,
    rotary_angles,
    shift_matrix,
    sinusoidal_table,
)
from transformer.model import Network
from transformer.training.presets import TWINS

CROSS = {
    "nowhere": "Cross-attention applies no positions either.",
    "embeddings": "Nothing is applied *inside* cross-attention, but what was added to the embeddings travels "
    "on in the stream, so positions reach it through the encoder's output.",
    "rotation": "Nothing is applied *inside* cross-attention, whose queries and keys belong to two "
    "sentences: positions reach it only as far as self-attention has mixed them into the encoder's "
    "output.",
}
NOTHING = (
    "There is no table to show. Open “on your sentence” and exchange two words: this twin's "
    "encoder does not notice."
)
DEPENDS = "What is added depends on the query. “Side by side” shows it for one word."
WHYS = """**Why not the integer?** Position {last:,} would add {before:,} to numbers of about 1, and would
drown the word. Every row of this table has the norm √(d_model / 2) = {norm:.2f}, at any position.

**Why not pos / n?** One step to the right would be 1/10 in a sentence of 10 tokens and 1/50 in one of 50,
and the decoder does not know *n* yet.

**Why sinusoids?** For a fixed offset *k*, PE(pos + k) is the same linear map of PE(pos) everywhere. The paper
hoped that this would make it easy to learn to attend by relative positions.

**Why added, and not concatenated?** With dimensions of their own, a matrix would act on each apart:
W·[x; p] = W₁x + W₂p. Adding is the special case W₁ = W₂, in one space. In return the stream stays narrow:
each of the {last:,} positions carries {d_model:,} numbers instead of {wide:,}, and the four matrices of one
sub-layer do not grow from 4 · {d_model:,}² = {narrow:,} numbers to 4 · {wide:,}² = {grown:,}."""
BASES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
SIZES = TWINS["positions-rotary"].sizes
WINDOW, SQUARE, NARROW, FAR = 512, 256, 240, 40
"""Most positions of a table and of a map of all pairs, most columns on a phone, farthest bias."""


@part()
def show() -> None:
    """The chosen encoding: what it is, its formula, its pictures."""
    now = session.current()
    name = now.values(Positions).encoding or USUAL

    def take(chosen: str) -> None:
        session.change(encoding=None if chosen == USUAL else chosen, d_model=None)

    pickers.switch("encoding", "Encoding", TITLES, name, take)
    notices = st.empty()
    encoding = ENCODINGS[name]
    words, formula = st.columns([1.15, 1], vertical_alignment="center")
    words.markdown(f"{encoding.what} {CROSS.get(encoding.acts, CROSS['rotation'])} {probed(name)}")
    caption = encoding.paper
    if encoding.from_zero:
        caption += ". The formula counts positions and dimensions from 0, the pictures from 1"
    words.caption(caption)
    formula.latex(encoding.formula)
    pictures = {"sinusoidal": sinusoidal, "learned": learned, "shaw": shaw, "rotary": rotary}
    pictures.get(name, partial(computed, name))(now)
    with notices:
        frame.show_notices(now)


def probed(name: str) -> str:
    """How well a linear probe reads positions in the output of a twin; empty if not measured."""
    rates = twins_measured().get("probe", {}).get("models", {})
    if name not in rates:
        return ""
    share = (
        f"a linear probe reads a token's position there with **R² = {rates[name]['value']:.2f}**"
    )
    if name == "none":
        return f"Still, {share}: some tokens give it away, as a full stop ends the sentence."
    if "none" in rates:
        share += f" ({rates['none']['value']:.2f} without an encoding)"
    return f"In this twin, {share}."


def sizes(now: State, width: int, label: str) -> tuple[int, slice]:
    """The controls of a table; its width, and the positions that are drawn."""
    values = now.values(Positions)
    boxes = st.columns(4 if values.positions > WINDOW else 3)
    bases = sorted({*BASES, values.base})
    width = values.d_model or width
    with boxes[0]:
        pickers.slide(
            "d_model", label, width, lambda each: session.change(d_model=int(each), dimension=None)
        )
    control = session.control("base", values.base)
    boxes[1].select_slider("Base", bases, values.base, format_func="{:,}".format, **control)
    with boxes[2]:

        def take(chosen: float) -> None:
            session.change(positions=int(chosen), first=None)

        pickers.slide("positions", "Positions", values.positions, take)
    first = fitted(
        "window that starts at position",
        now.values(Maps).first or 0,
        max(0, values.positions - WINDOW),
    )
    with boxes[-1]:
        pickers.window(first, WINDOW, values.positions, "positions")
    return width, slice(first, min(first + WINDOW, values.positions))


def sinusoidal(now: State) -> None:
    """The table of the paper, some columns, its products, the map from a position to another."""
    values = now.values(Positions)
    d_model, window = sizes(now, SIZES["d_model"], "d_model")
    table = sinusoidal_table(values.positions, d_model, values.base).numpy()
    rows = table[window]
    is_narrow = d_model <= NARROW
    left, right = st.columns(2) if is_narrow else (st.container(), st.container())
    with left:
        sinusoidal_map(rows, window, values.base)
    with right:
        waves(rows, window, values)
    left, right = st.columns(2)
    with left:
        sinusoidal_products(rows[:SQUARE], window.start)
    with right:
        linear_map(table, d_model, now)
    with st.expander("Why not simply the number of the position? Why added?"):
        st.markdown(whys(last=len(table), d_model=d_model))


def sinusoidal_map(rows: np.ndarray, window: slice, base: int) -> None:
    """Some rows of the table as a map."""
    first = window.start + 1
    d_model = rows.shape[1]
    caption = (
        f"PE: positions {first} to {window.stop} × {d_model} dimensions, base {base:,} · by formula"
    )
    if d_model > NARROW:
        caption += f"; a map less than {d_model} px wide does not show every column"
    draw("table", lambda: table_map(rows, first, "position", "dimension"), caption)


def waves(rows: np.ndarray, window: slice, values: Positions) -> None:
    """Single columns of the table, a chosen one first."""
    d_model = rows.shape[1]
    chosen = fitted("dimension", values.dimension or 0, d_model - 1)
    far = [
        dimension
        for dimension in (d_model // 4, d_model // 2, d_model - 2)
        if dimension // 2 != chosen // 2
    ]
    curves = {}
    for dimension in (chosen, *far):
        wave = 2 * math.pi * values.base ** (dimension // 2 * 2 / d_model)
        name = f"dimension {dimension + 1}, repeats after {wave:,.1f} tokens"
        curves[name] = rows[:, dimension]
    places = range(window.start + 1, window.stop + 1)
    draw(
        "curves",
        lambda: lines(places, curves, ("position", "value"), height=318, top=64),
        "Single dimensions of PE · by formula",
    )
    pickers.place("dimension", "Dimension drawn first", chosen, d_model)


def sinusoidal_products(rows: np.ndarray, start: int) -> None:
    """Every position of a square of the table times every other."""
    first = start + 1
    draw(
        "products",
        lambda: table_map(rows @ rows.T, first, "position", "position", left=first),
        f"PE · PEᵀ, positions {first} to {start + len(rows)}: the product depends on the distance "
        f"alone, and is largest ({rows.shape[1] // 2}) on the diagonal",
    )


def whys(*, last: int, d_model: int) -> str:
    """Why sinusoids, in the numbers of a table."""
    wide = 2 * d_model
    return WHYS.format(
        last=last,
        before=last - 1,
        norm=math.sqrt(d_model / 2),
        d_model=d_model,
        wide=wide,
        narrow=4 * d_model**2,
        grown=4 * wide**2,
    )


def linear_map(table: np.ndarray, d_model: int, now: State) -> None:
    """One matrix that moves every position, held against all of them in both precisions."""
    values = now.values(Positions)
    offset = min(values.offset, len(table) - 1)
    matrix = shift_matrix(offset, d_model, values.base).numpy()
    count = len(table) - offset
    errors = [
        float(np.abs(numbers[:count] @ matrix.T - numbers[offset:]).max())
        for numbers in (table, table.astype(np.float32).astype(np.float64))
    ]
    moved = table[: min(64, count)] @ matrix.T
    places = offset + 1 + np.arange(len(moved))
    curves = {
        "PE at that position": table[places - 1, 0],
        f"M · PE, {offset} positions earlier": moved[:, 0],
    }
    draw(
        "shift",
        lambda: lines(places, curves, ("position", "dimension 1"), height=250),
        f"Why sinusoids: one matrix M (a rotation of each pair) moves every position by {offset}. "
        f"Largest error over {count:,} positions and all dimensions: "
        f"{labels.scientific(errors[0])} in float64, {labels.scientific(errors[1])} with PE cast "
        "to float32.",
    )
    pickers.slide("offset", "Move by", offset, ends=(0, min(max(200, offset), len(table) - 1)))


def turned(angles: np.ndarray) -> np.ndarray:
    """(n) angles in radians → (2n − 1) in degrees below 360, halfway ones between, gaps at turns."""
    degrees = np.degrees(angles) % 360
    halves = np.full(2 * len(degrees) - 1, np.nan)
    halves[0::2] = degrees
    halves[1::2] = np.where(np.diff(degrees) < 0, np.nan, (degrees[:-1] + degrees[1:]) / 2)
    return halves


def rotary(now: State) -> None:
    """The angles of some pairs of dimensions, and a query's product with an equal key by distance."""
    values = now.values(Positions)
    width, window = sizes(now, SIZES["d_model"] // SIZES["n_heads"], "Width of a head")
    angles = rotary_angles(values.positions, width, values.base).numpy()
    rows = angles[window]
    product = np.cos(angles[:WINDOW]).mean(axis=1)
    pairs = {
        f"pair {i + 1}, one turn in {2 * math.pi / angles[1, i]:,.1f} tokens": turned(rows[:, i])
        for i in sorted({0, width // 8, width // 4, width // 2 - 1})
    }
    left, right = st.columns(2)
    with left:
        places = window.start + 1 + np.arange(2 * len(rows) - 1) / 2
        titles = ("position", "angle in degrees, modulo 360")
        draw(
            "angles",
            lambda: lines(places, pairs, titles, height=360, top=64),
            f"Angles by which pairs of dimensions are rotated, heads of {width}, base "
            f"{values.base:,} · by formula",
        )
    with right:
        share = ("distance", "product, as a share of |q||k|")
        draw(
            "rotary-products",
            lambda: lines(range(len(product)), {"q · k": product}, share, height=360),
            "A query and an equal key at a distance: their product falls as the pairs drift "
            "apart · by formula",
        )


def parameter(network: Network, side: Side) -> np.ndarray:
    table: np.ndarray = next(network.stack(side).positions.parameters()).numpy()
    return table


def learned(now: State) -> None:
    """The learned table and its cosines."""
    if (model := twin("learned")) is None:
        return
    side = stack_switch(now, "trained")
    table = parameter(model.model, side)
    ways = table / np.linalg.norm(table, axis=1, keepdims=True)
    left, right = st.columns(2)
    with left:
        draw(
            "table",
            lambda: table_map(table, 1, "position", "dimension"),
            (
                f"Table of the {side}, as trained: {' positions × '.join(map(str, table.shape))} "
                "dimensions"
            ),
        )
    with right:
        draw(
            "products",
            lambda: table_map(ways @ ways.T, 1, "position", "position"),
            f"Cosines between all rows of the {side}'s table: late positions are like no other",
        )


def shaw(now: State) -> None:
    """The vectors of relative keys, by distance."""
    if (model := twin("shaw")) is None:
        return
    side = stack_switch(now, "trained")
    vectors = parameter(model.model, side)
    layers, heads, distances = vectors.shape[:3]
    reach = distances // 2
    layer, head = map(
        fitted,
        ("layer", "head"),
        now.values(Positions).twin_head or (0, 0),
        (layers - 1, heads - 1),
    )
    at = layer, head
    names = {
        place: labels.head_phrase(*place)
        for place in itertools.product(range(layers), range(heads))
    }
    pickers.choose(
        "positions.head", "Head", names, at, lambda each: session.change(twin_head=tuple(each))
    )
    left, right = st.columns(2)
    with left:
        draw(
            "vectors",
            lambda: table_map(vectors[at], -reach, "distance", "dimension"),
            (
                f"Vectors a by distance (key position − query position) · {side}, {names[at]}, as "
                "trained"
            ),
        )
    with right:
        norms = {
            f"head {i + 1}": length
            for i, length in enumerate(np.linalg.norm(vectors[layer], axis=-1))
        }
        draw(
            "vector-norms",
            lambda: lines(range(-reach, reach + 1), norms, ("distance", "norm of a"), height=360),
            f"How strongly each distance can speak: norm of a, layer {layer + 1} of the {side}",
        )


@torch.inference_mode()
def computed(name: str, now: State) -> None:
    """What an encoding adds or rotates, as its class computes it, or as its twin learnt it."""
    if ENCODINGS[name].acts == "nowhere":
        inform(NOTHING)
        return
    source = Computed.of(name)
    if source is None:
        return
    count = min(now.values(Positions).positions, source.config.max_positions)
    for column, side in zip(st.columns(2), source.encodings, strict=True):
        rule, *rules = source.encodings[side].rules(source.config.sizes[side][0])
        if rule is not None and rule.divided:
            inform(DEPENDS)
            return
        with column:
            if rule is not None:
                biases(source, side, rule, rules)
            elif ENCODINGS[name].acts == "rotation":
                products_by_distance(source, side, count)
            else:
                added(source, side, count)


class Computed(NamedTuple):
    """The encodings of a model's sides."""

    config: ModelConfig
    encodings: Mapping[Side, PositionalEncoding]
    origin: str  # where they come from, for captions

    @classmethod
    def of(cls, name: str) -> Computed | None:
        """By formula; those with parameters as the twin learnt them, None if it is not here."""
        config: ModelConfig = TransformerConfig(**TWINS[f"positions-{name}"].sizes)
        encodings: Mapping[Side, PositionalEncoding] = {
            side: make_positions(config, causal=side == "decoder") for side in config.stacks
        }
        if not any(True for encoding in encodings.values() for _ in encoding.parameters()):
            return cls(config, encodings, "by formula")
        model = twin(name)
        if model is None:
            return None
        stacks = {side: model.model.stack(side).positions for side in model.config.stacks}
        return cls(model.config, stacks, f"positions/{name}, as trained")


def biases(source: Computed, side: Side, rule: BiasRule, others: Sequence[BiasRule | None]) -> None:
    """What is added to the scores of each head, by distance."""
    config = source.config
    alike = all(other and torch.equal(rule.table, other.table) for other in others)
    layers = "every layer" if alike else "the first layer"
    last = FAR if side == "encoder" else 0
    span = torch.arange(-FAR, last + 1)
    query = torch.zeros(config.n_heads, 1, config.d_head)
    rows = rule.scores(query, -span[:1], span - span[0])[:, 0].numpy()
    curves = {f"head {head + 1}": row for head, row in enumerate(rows)}
    make = partial(lines, span.numpy(), curves, ("distance, key − query", "bias"), height=330)
    draw(f"bias-{side}", make, f"Bias by distance in {layers} of the {side} · {source.origin}")


def products_by_distance(source: Computed, side: Side, count: int) -> None:
    """The product of a query with an equal key, both turned by their positions."""
    d_head = source.config.d_head
    vectors = torch.full((1, 1, count, d_head), d_head**-0.5)
    turned_vectors = source.encodings[side].rotate(vectors)[0, 0]
    products = {"q · k": (turned_vectors @ turned_vectors[0]).numpy()}
    make = partial(lines, range(count), products, ("distance", "product"))
    caption = f"A query and an equal key at a distance in the {side} · {source.origin}"
    draw(f"products-{side}", make, caption)


def added(source: Computed, side: Side, count: int) -> None:
    """The table that is added to embeddings; nothing is drawn without one."""
    table = source.encodings[side].added(count)
    if table is None:
        return
    make = partial(table_map, table.numpy(), 1, "position", "dimension")
    caption = f"What is added in the {side}: {count} positions · {source.origin}"
    draw(f"table-{side}", make, caption)
