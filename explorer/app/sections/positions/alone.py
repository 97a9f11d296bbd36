"""One positional encoding by itself: tables, curves and biases, by formula or read from its
twin."""

import itertools
import math
from functools import partial

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
from transformer.encodings import make_positions, rotary_angles, shift_matrix, sinusoidal_table
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
    counted = (
        ". The formula counts positions and dimensions from 0, the pictures from 1"
        * encoding.from_zero
    )
    words.caption(encoding.paper + counted)
    formula.latex(encoding.formula)
    pictures = {"sinusoidal": sinusoidal, "learned": learned, "shaw": shaw, "rotary": rotary}
    pictures.get(name, partial(computed, name))(now)
    with notices:
        frame.show_notices(now)


def probed(name: str) -> str:
    """How well a linear probe reads positions in the encoder's output of a twin; empty if not
    measured."""
    rates = twins_measured().get("probe", {}).get("models", {})
    if name not in rates:
        return ""
    share = (
        f"a linear probe reads a token's position there with **R² = {rates[name]['value']:.2f}**"
    )
    if name == "none":
        return f"Still, {share}: some tokens give it away, as a full stop ends the sentence."
    bare = f" ({rates['none']['value']:.2f} without an encoding)" if "none" in rates else ""
    return f"In this twin, {share}{bare}."


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
    """The table of the paper, some of its columns, its products, and the map from one position to
    another."""
    values = now.values(Positions)
    d_model, window = sizes(now, SIZES["d_model"], "d_model")
    table = sinusoidal_table(values.positions, d_model, values.base).numpy()
    rows = table[window]
    first = window.start + 1
    is_narrow = d_model <= NARROW
    left, right = st.columns(2) if is_narrow else (st.container(), st.container())
    with left:
        thin = (
            "" if is_narrow else f"; a map less than {d_model} px wide does not show every column"
        )
        draw(
            "table",
            lambda: table_map(rows, first, "position", "dimension"),
            f"PE: positions {first} to {window.stop} × {d_model} dimensions, base {values.base:,} · "
            f"by formula{thin}",
        )
    with right:
        at = fitted("dimension", values.dimension or 0, d_model - 1)
        far = [
            dimension
            for dimension in (d_model // 4, d_model // 2, d_model - 2)
            if dimension // 2 != at // 2
        ]
        waves = {
            dimension: 2 * math.pi * values.base ** (dimension // 2 * 2 / d_model)
            for dimension in (at, *far)
        }
        curves = {
            f"dimension {dimension + 1}, repeats after {wave:,.1f} tokens": rows[:, dimension]
            for dimension, wave in waves.items()
        }
        places = range(first, window.stop + 1)
        draw(
            "curves",
            lambda: lines(places, curves, ("position", "value"), height=318, top=64),
            "Single dimensions of PE · by formula",
        )
        pickers.place("dimension", "Dimension drawn first", at, d_model)
    left, right = st.columns(2)
    with left:
        square = rows[:SQUARE]
        draw(
            "products",
            lambda: table_map(square @ square.T, first, "position", "position", left=first),
            f"PE · PEᵀ, positions {first} to {window.start + len(square)}: the product depends on "
            f"the distance alone, and is largest ({d_model // 2}) on the diagonal",
        )
    with right:
        linear_map(table, d_model, now)
    with st.expander("Why not simply the number of the position? Why added?"):
        last = len(table)
        wide = 2 * d_model
        norm = math.sqrt(d_model / 2)
        numbers = {"last": last, "before": last - 1, "norm": norm, "d_model": d_model, "wide": wide}
        st.markdown(WHYS.format(**numbers, narrow=4 * d_model**2, grown=4 * wide**2))


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
    """(n) angles in radians → (2n − 1) in degrees below 360, with halfway angles, a gap after each
    turn."""
    degrees = np.degrees(angles) % 360
    halves = np.full(2 * len(degrees) - 1, np.nan)
    halves[0::2] = degrees
    halves[1::2] = np.where(np.diff(degrees) < 0, np.nan, (degrees[:-1] + degrees[1:]) / 2)
    return halves


def rotary(now: State) -> None:
    """The angles of some pairs of dimensions, and the product of a query and an equal key at a
    distance."""
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
    """What an encoding adds or rotates, as its class computes it; one that is trained is that of
    its twin."""
    config: ModelConfig = TransformerConfig(**TWINS[f"positions-{name}"].sizes)
    encodings = {side: make_positions(config, causal=side == "decoder") for side in config.stacks}
    where, acts = "by formula", ENCODINGS[name].acts
    if acts == "nowhere":
        inform(NOTHING)
        return
    if any(True for encoding in encodings.values() for _ in encoding.parameters()):
        if (model := twin(name)) is None:
            return
        encodings = {side: model.model.stack(side).positions for side in model.config.stacks}
        config = model.config
        where = f"positions/{name}, as trained"
    count = min(now.values(Positions).positions, config.max_positions)
    for column, (side, encoding) in zip(st.columns(2), encodings.items(), strict=True):
        rule, *rules = encoding.rules(config.sizes[side][0])
        if rule is not None and rule.divided:
            inform(DEPENDS)
            return
        with column:
            if rule is not None:
                alike = all(other and torch.equal(rule.table, other.table) for other in rules)
                layers = "every layer" if alike else "the first layer"
                span = torch.arange(-FAR, (FAR if side == "encoder" else 0) + 1)
                query = torch.zeros(config.n_heads, 1, config.d_head)
                biases = rule.scores(query, -span[:1], span - span[0])[:, 0].numpy()
                curves = {f"head {head + 1}": row for head, row in enumerate(biases)}
                titles = ("distance, key − query", "bias")
                make = partial(lines, span.numpy(), curves, titles, height=330)
                draw(f"bias-{side}", make, f"Bias by distance in {layers} of the {side} · {where}")
            elif acts == "rotation":
                turns = encoding.rotate(
                    torch.full((1, 1, count, config.d_head), config.d_head**-0.5)
                )[0, 0]
                product = {"q · k": (turns @ turns[0]).numpy()}
                make = partial(lines, range(count), product, ("distance", "product"))
                caption = f"A query and an equal key at a distance in the {side} · {where}"
                draw(f"products-{side}", make, caption)
            elif (table := encoding.added(count)) is not None:
                make = partial(table_map, table.numpy(), 1, "position", "dimension")
                draw(
                    f"table-{side}",
                    make,
                    f"What is added in the {side}: {count} positions · {where}",
                )
