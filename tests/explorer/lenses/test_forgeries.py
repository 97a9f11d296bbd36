"""Every measure and picture a second time, by the formulas in NumPy; and what is forged must be
noticed.

A row of `TABLE` has what the package gives, the same from `second_ways`, which rest on a
Transformer in float64 (`plain`), and forgeries of what the package gives, each of which the
comparison must refuse.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import second_ways as second
from plain import Doubles, norm, softmax
from second_ways import HEAD, LAYER, STEP, Bench

from explorer import lenses
from explorer.lenses.circuits import sink
from explorer.lenses.heads import statistics
from explorer.lenses.heads.roles import strengths
from explorer.lenses.heads.survey import Line
from explorer.lenses.heads.surveyor import Profiler
from explorer.lenses.inside import inside, parts
from explorer.lenses.measures import effect as effects_of_keys
from explorer.lenses.measures.stream import carried_map
from transformer import Window, interventions
from transformer.config import AttentionKind

MODELS = ("pre rotary", "pre shaw", "post t5", "en-de")
KINDS = ("encoder", "decoder", "cross")


@pytest.fixture(scope="module", params=MODELS)
def bench(request, tokenizer) -> Bench:
    return Bench(request.param, tokenizer)


def carried(b: Bench, kind: str, head: int = HEAD) -> Doubles:
    found = lenses.carried(b.model, b.run, kind, LAYER, head)
    return np.vstack([found.norms, found.values, 0 * found.values + found.bias])


def attribution(b: Bench) -> list[float]:
    found = lenses.attribution(b.model, b.run, STEP, b.token, against=b.rival)
    return [found.total, *second.in_order(zip(found.writers, found.values, strict=True))]


def score_parts(b: Bench, kind: str, head: int = HEAD) -> Doubles:
    found = lenses.score_parts(b.model, b.run, (kind, LAYER, head), STEP, 1)
    rows, columns = (
        np.argsort([str(tuple(each)) for each in side]) for side in (found.queries, found.keys)
    )
    return found.values[rows][:, columns]


def effect(b: Bench, kind: str, head: int, way: Any) -> Doubles:
    step = STEP if kind == "encoder" else None
    return lenses.effect(b.translator, b.run, kind, LAYER, head, way, step=step, rows=[1, 2])[
        [1, 2]
    ]


def effect_map(b: Bench, kind: str, head: int = HEAD) -> Doubles:
    window = Window(1, 3, 0, len(b.run.labels(kind).keys))
    found = effects_of_keys.effect_in(b.translator, b.run, kind, LAYER, head, window)
    view = effects_of_keys.effect_map(b.run.map(kind, LAYER, head, window), found)
    return np.stack([view.measured, view.weights])


def of_rows(b: Bench, kind: str, head: int = HEAD) -> Doubles:
    rows = statistics.HeadsOfKind.of(b.run, AttentionKind(kind), b.model.output_projection).rows
    rows = dict(zip(statistics.NAMES, rows[:, LAYER, head], strict=True))
    known = second.statistics_of_rows(b, kind)
    assert not [
        name for name, each in rows.items() if np.isfinite(each).any() and name not in known
    ]
    return np.stack([rows[name] for name in sorted(known)])


def means(b: Bench, kind: str) -> dict[str, Doubles]:
    return statistics.HeadsOfKind.of(b.run, AttentionKind(kind)).sums.means()


def distances(b: Bench, kind: str, head: int = HEAD) -> Doubles:
    profiler = Profiler(AttentionKind(kind))
    profiler.add(statistics.HeadsOfKind.of(b.run, AttentionKind(kind)), b.run.labels(kind))
    found = profiler.profile([Line(b.run.source_text)])
    return np.stack([found.distances[LAYER, head], found.chance[LAYER]])


def lens(b: Bench, kind: str) -> list[list[float]]:
    rows, _ = parts.logit_lens(b.model, b.run, STEP, 3)
    best = [[(each.probability, each.token_id / 1e4) for each in row.best] for row in rows]
    return [
        [row.chosen, 1 / row.rank, *np.ravel(np.transpose(each))]
        for row, each in zip(rows, best, strict=True)
    ]


def resting(b: Bench, kind: str, head: int = HEAD) -> list[float]:
    found = sink(b.translator, [b.run], (AttentionKind(kind), LAYER, head))
    return [found.weight, found.value, found.stream, found.lost]


def products(b: Bench, kind: str, head: int = HEAD) -> list[float]:
    found = inside.product_spread(b.run.attention.layer(kind, LAYER), head)
    return [found.products, found.products / found.d_head, found.query, found.key]


def compared(b: Bench, kind: str) -> Doubles:
    changed = b.translator.force(
        b.run.source_text, b.run.text, interventions=[interventions.hide(key) for key in (0, 1, 2)]
    )
    found = lenses.compare_runs(b.run, changed)
    return np.stack([found.delta_log_p, found.kl])


# --- the table -----------------------------------------------------------------------------------


def neighbours(x: Doubles, axis: int = -1) -> Doubles:
    """Exchanges the two neighbours that differ most."""
    x = np.moveaxis(x.copy(), axis, -1)
    at = np.unravel_index(np.nanargmax(np.abs(np.diff(x, axis=-1))), np.diff(x, axis=-1).shape)
    here = at
    there = (*at[:-1], at[-1] + 1)
    x[here], x[there] = x[there], x[here]
    return np.moveaxis(x, -1, axis)


def one_cell(x: Doubles) -> Doubles:
    x, known = x.copy(), np.argwhere(np.isfinite(x))
    x[tuple(known[len(known) // 2])] += 0.02 * np.nanmax(np.abs(x))
    return x


Forge = Callable[[Bench, str, Doubles], Any]
CELL, EXCHANGED, ROWS = "one cell altered", "neighbours exchanged", "rows exchanged"
REVERSED, SIGN, SCALED, OTHER = "reversed", "sign turned", "scaled by √d", "of another head"
COMMON: dict[str, Forge] = {
    CELL: lambda b, k, x: one_cell(x),
    EXCHANGED: lambda b, k, x: neighbours(x),
    ROWS: lambda b, k, x: neighbours(x, 0),
    REVERSED: lambda b, k, x: np.flip(x, -1),
    SIGN: lambda b, k, x: -x,
    SCALED: lambda b, k, x: x * np.sqrt(b.plain.size),
}
ORDER = (CELL, EXCHANGED, REVERSED)


class Row(NamedTuple):
    """A measure: what the package gives, the same by the formulas, and what must be noticed."""

    result: Callable[..., Any]  # of a bench, a kind, and for some a head
    plain: Callable[[Bench, str], Any]
    common: tuple[str, ...] = ORDER
    kinds: tuple[str, ...] = KINDS
    limit: float = 1e-4  # share of the largest number
    forged: dict[str, Forge] = {}  # noqa: RUF012

    def forge(self, name: str, b: Bench, kind: str, result: Doubles) -> Doubles:
        """What somebody would draw in the place of the result."""
        if name == OTHER:
            return np.asarray(self.result(b, kind, 0), float)
        return np.asarray((COMMON | self.forged)[name](b, kind, result), float)


def effects(way: str) -> Row:
    common = (*ORDER, SIGN, OTHER)
    return Row(
        lambda b, k, h=HEAD: effect(b, k, h, way),
        lambda b, k: second.effect(b, k, way),
        common,
        limit=1e-2,
    )


def roots(b: Bench) -> float:
    return float(np.sqrt(b.plain.size))


CROSS = ("cross",)
DECODER = ("decoder", "cross")
TABLE: dict[str, Row] = {
    "weights": Row(
        lambda b, k, h=HEAD: b.run.map(k, LAYER, h).weights,
        lambda b, k: b.head(k).weights[HEAD],
        (*ORDER, ROWS, OTHER),
        forged={
            "not divided by √d": lambda b, k, x: (
                x ** roots(b) / (x ** roots(b)).sum(1, keepdims=True)
            )
        },
    ),
    "masked weights": Row(
        lambda b, k: b.run.map(k, 0, HEAD).weights,
        lambda b, k: b.head(k, 0).weights[HEAD],
        (),
        kinds=("decoder",),
        forged={"the mask forgotten": lambda b, k, x: softmax(b.head(k, 0).scores[HEAD])},
    ),
    "scores": Row(
        lambda b, k, h=HEAD: b.run.attention.map(k, LAYER, h).scores,
        lambda b, k: b.head(k).scores[HEAD],
        (*ORDER, ROWS, SIGN, SCALED, OTHER),
    ),
    "carried": Row(carried, second.carried, (*ORDER, OTHER)),
    "shares carried": Row(
        lambda b, k: (
            carried_map(
                b.run.map(k, LAYER, HEAD), lenses.carried(b.model, b.run, k, LAYER, HEAD)
            ).weights
        ),
        lambda b, k: second.carried(b, k)[:-2] / second.carried(b, k)[:-2].sum(1, keepdims=True),
        ORDER,
    ),
    "carried together": Row(
        lambda b, k: lenses.carried_together(b.model, b.run, k, LAYER),
        lambda b, k: norm(sum(second.together(b, k))),
        ORDER,
    ),
    "attribution": Row(
        lambda b, k: attribution(b), lambda b, k: second.attribution(b), (*ORDER, SIGN), CROSS
    ),
    "attribution by key": Row(
        lambda b, k: lenses.attribution(b.model, b.run, *b.asked).keys[AttentionKind(k)],
        lambda b, k: second.keys(b, k),
        (CELL, EXCHANGED, SIGN),
        DECODER,
    ),
    "by source": Row(
        lambda b, k: lenses.by_key(b.model, b.run, *b.asked),
        lambda b, k: second.by_key(b),
        (*ORDER, SIGN),
        CROSS,
    ),
    "score parts": Row(
        score_parts, lambda b, k: second.scores(b, k, STEP, 1), (*ORDER, ROWS, SIGN, SCALED, OTHER)
    ),
    "effect hidden": effects("hidden"),
    "effect zeroed": effects("zeroed"),
    "effect mean": effects("mean"),
    "map of effects": Row(effect_map, second.effect_map, (*ORDER, OTHER), limit=1e-2),
    "on difference": Row(
        lambda b, k: lenses.on_difference(b.translator, b.run, STEP, b.rival),
        second.on_difference,
        (*ORDER, SIGN),
        CROSS,
        2e-3,
    ),
    "word effect": Row(
        lambda b, k: lenses.word_effect(b.translator, b.run, k, "mean"),
        lambda b, k: second.words(b, k, "mean"),
        (*ORDER, ROWS, SIGN),
        ("encoder", "cross"),
        2e-3,
    ),
    "rewired": Row(
        lambda b, k, h=HEAD: lenses.rewired(
            b.translator, b.run, k, LAYER, h, second.uniform(b.run.mask(k, LAYER, h))[None]
        )[0],
        second.rewired,
        (*ORDER, SIGN, OTHER),
        limit=2e-3,
    ),
    "shares of a block": Row(
        lambda b, k: lenses.alti(b.model, b.run).blocks[AttentionKind(k)][LAYER],
        second.shares,
        (*ORDER, ROWS),
    ),
    "alti": Row(
        lambda b, k: np.hstack([(found := lenses.alti(b.model, b.run)).source, found.prefix]),
        lambda b, k: second.product(b, lambda kind, layer: second.shares(b, kind, layer)),
        (*ORDER, ROWS),
        CROSS,
    ),
    "value zeroing": Row(
        lambda b, k: lenses.value_zeroing(b.model, b.run, k, LAYER),
        second.zeroing,
        (*ORDER, ROWS),
        limit=1e-3,
    ),
    "statistics of rows": Row(
        of_rows,
        lambda b, k: [rows for _, rows in sorted(second.statistics_of_rows(b, k).items())],
        (*ORDER, ROWS, OTHER),
    ),
    "mean entropy": Row(
        lambda b, k: means(b, k)["entropy"],
        lambda b, k: second.mean(b, k, "entropy"),
        (CELL, EXCHANGED, ROWS),
    ),
    "roles": Row(
        lambda b, k, h=HEAD: [
            each[LAYER, h] for _, each in sorted(strengths(means(b, k), AttentionKind(k)).items())
        ],
        second.roles,
        (CELL, EXCHANGED),
    ),
    "distances": Row(distances, second.distances, (*ORDER, OTHER)),
    "logit lens": Row(lens, second.lens, (CELL, EXCHANGED, ROWS), CROSS),
    "sink": Row(resting, second.resting, (CELL, EXCHANGED, OTHER)),
    "spread of q·k": Row(products, second.products, (CELL, EXCHANGED, OTHER)),
    "two runs": Row(compared, second.compared, (*ORDER, ROWS, SIGN), CROSS, 2e-3),
}
CASES = [(name, kind) for name, row in TABLE.items() for kind in row.kinds]


def same(drawn: Doubles, expected: Doubles, limit: float) -> bool:
    """Whether all numbers agree, and none is one in one of the two alone."""
    if drawn.shape != expected.shape or (np.isfinite(drawn) != np.isfinite(expected)).any():
        return False
    return bool(np.nanmax(np.abs(drawn - expected)) <= limit * np.nanmax(np.abs(expected)))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_formulas_give_the_same_and_notice_what_is_forged(bench: Bench, name: str, kind: str):
    row = TABLE[name]
    result, plain = (np.asarray(way(bench, kind), float) for way in (row.result, row.plain))
    np.testing.assert_allclose(result, plain, rtol=0, atol=row.limit * np.nanmax(np.abs(plain)))
    forged = {each: row.forge(each, bench, kind, result) for each in (*row.common, *row.forged)}
    assert [each for each, drawn in forged.items() if same(drawn, plain, row.limit)] == []


def test_every_measure_has_a_row():
    source = Path(__file__).read_text()
    measures = [name for name in lenses.__all__ if name[0].islower() and name != "key_words"]
    assert [name for name in measures if f"lenses.{name}(" not in source] == []
