"""The numbers that pages draw of a measure, read from the figures, beside the formulas in plain
NumPy.

Between a lens and the screen there is no badge: what a page passes on wrongly, reversed or of
another row, is seen here alone. The second way is that of `second_ways`, for two sentences of a
bundled model.
"""

import html
import json
import re
from functools import cache

import numpy as np
import pytest
import second_ways as second
from app_pages import array, feeds, named_charts, run
from plain import Doubles
from second_ways import HEAD, LAYER, STEP, Bench

from explorer import page
from explorer.app.maps import measures
from explorer.app.server import models
from explorer.app.server.run_key import RunKey
from explorer.app.server.view import View
from explorer.lenses.measures.effect import WAYS
from explorer.lenses.measures.stream import Writer
from transformer.interventions import hide, write_text

EN_DE = (
    second.EN_DE,
    ("She reads a long book in the garden.", "Sie liest ein langes Buch im Garten."),
)
KINDS = ("encoder", "decoder", "cross")
BARS = 14
"""Parts with a bar of their own."""


@cache
def bench_of(texts: tuple[str, str]) -> Bench:
    return Bench("en-de", None, texts)


@pytest.fixture(params=EN_DE, ids=lambda texts: texts[0][:10])
def bench(request) -> Bench:
    return bench_of(request.param)


def opened(bench: Bench, name: str, **more: str):
    """A page at the step, and at the head of every kind, that the formulas are asked for."""
    at = dict.fromkeys(KINDS, f"{LAYER + 1}.{HEAD + 1}") | {"step": str(STEP + 1)}
    texts = {"text": bench.run.source_text, "target": bench.run.text}
    return run(name, model="en-de", **texts, **at, **more)


def close(drawn: Doubles, expected: Doubles, limit: float = 1e-3) -> bool:
    """Whether drawn numbers are the expected ones, up to a share of the largest; none where none
    is."""
    drawn = np.asarray(drawn, float)
    expected = np.asarray(expected, float)
    assert drawn.shape == expected.shape
    return bool(np.nanmax(np.abs(drawn - expected)) <= limit * np.nanmax(np.abs(expected)))


def rows_of(chart: dict) -> Doubles:
    """(rows, columns) the shares of a map of measures."""
    z = chart["data"][0]["z"]
    return (
        np.array([[np.nan if cell is None else cell for cell in row] for row in z])
        if isinstance(z, list)
        else array(z)
    )


def names_of(chart: dict) -> list[str]:
    """The names of bars, from the top."""
    return list(map(html.unescape, chart["layout"]["yaxis"]["ticktext"]))


def shares(*rows: Doubles, signed: tuple[bool, ...]) -> Doubles:
    """Rows as they are coloured: each by its largest, those in nats by the largest of all of
    them."""
    most = [np.nanmax(np.abs(row)) for row in rows]
    nats = max((each for each, sign in zip(most, signed, strict=True) if sign), default=0.0)
    ends = [max(nats, 0.1) if sign else each for each, sign in zip(most, signed, strict=True)]
    return np.array([row / end for row, end in zip(rows, ends, strict=True)])


# --- Explanation ---------------------------------------------------------------------------------


def test_effects_of_words_are_drawn_word_by_word(bench: Bench) -> None:
    chart = named_charts(opened(bench, "pages/explanation.py"))["words"]
    expected = second.words(bench, "cross", "hidden")[STEP]
    assert close(array(chart["data"][0]["x"]), expected, 5e-3)
    typed = bench.run.source_text.replace(".", " .").split()
    assert [name.strip("₁₂") for name in names_of(chart)] == [*typed, "</s>"]


@pytest.mark.parametrize("kind", KINDS)
def test_weight_what_was_carried_and_effect_of_a_row_are_drawn(bench: Bench, kind: str) -> None:
    at = opened(bench, "pages/explanation.py", kind=kind, source=str(STEP + 1))
    carried = second.carried(bench, kind)
    place = bench.head(kind)
    effects = np.full(len(place.mask[STEP]), np.nan)
    for key in np.flatnonzero(place.mask[STEP]):
        effects[key] = bench.plain.effect(kind, (key,), "hidden", LAYER, HEAD, STEP)[STEP]
    expected = shares(
        np.append(place.weights[HEAD, STEP], np.nan),
        np.append(carried[STEP], carried[-1, 0]),
        np.append(effects, np.nan),
        signed=(False, False, True),
    )
    assert close(rows_of(named_charts(at)["measures"]), expected, 1e-2)


def test_the_parts_of_a_logit_are_drawn(bench: Bench) -> None:
    charts = named_charts(opened(bench, "pages/explanation.py", view="why"))
    parts = {
        str(Writer(*name)): float(part) for name, part in second.attribution_parts(bench).items()
    }
    largest = sorted(parts, key=lambda name: -abs(parts[name]))[:BARS]
    bars = charts["parts"]["data"][0]
    drawn = dict(zip(names_of(charts["parts"]), array(bars["x"]).tolist(), strict=True))
    rest = next(name for name in drawn if name.endswith(" others"))
    assert drawn.pop(rest) == pytest.approx(
        sum(parts.values()) - sum(map(parts.get, largest)), abs=2e-3
    )
    assert drawn == pytest.approx({name: parts[name] for name in largest}, abs=2e-3)
    rows = second.by_key(bench), second.on_difference(bench, "cross")
    expected = shares(*rows, signed=(True, True))
    assert close(rows_of(charts["tokens.cross"]), expected, 1e-2)


def test_shares_of_the_source_are_drawn(bench: Bench) -> None:
    charts = named_charts(opened(bench, "pages/explanation.py", view="shares"))
    found = second.product(bench, lambda kind, layer: second.shares(bench, kind, layer))
    source = found[:, : len(bench.plain.source)]
    bars = {each["name"]: array(each["y"]) for each in charts["source share"]["data"]}
    assert close(bars["source"], source.sum(1))
    assert close(bars["prefix"], 1 - source.sum(1))
    assert close(rows_of(charts["source tokens"]), source / source.max(1, keepdims=True))


# --- maps and strips -----------------------------------------------------------------------------

PAGES = {
    "app.py": KINDS,
    "pages/encoder_self_attention.py": ("encoder",),
    "pages/decoder_self_attention.py": ("decoder",),
    "pages/cross_attention.py": ("cross",),
}
MAPS = [(script, kind) for script, kinds in PAGES.items() for kind in kinds]


def cells(at, kind: str) -> Doubles:
    """(queries, keys, numbers) of a map: its share, and the measure itself."""
    (first, *_) = json.loads(feeds(at)[kind]["figure"])["data"]
    return array(first["customdata"])


@pytest.mark.parametrize(("script", "kind"), MAPS)
@pytest.mark.parametrize("measure", ["weight", "carried", "effect"])
def test_the_cells_of_a_map_are_the_measure(
    bench: Bench, script: str, kind: str, measure: str
) -> None:
    drawn = cells(opened(bench, script, measure=measure, source=str(STEP + 1)), kind)
    place = bench.head(kind)
    if measure == "weight":
        assert close(drawn[..., 0], place.weights[HEAD])
        assert close(drawn[place.mask, 1], place.scores[HEAD][place.mask])
    elif measure == "carried":
        carried = second.carried(bench, kind)[:-2]
        assert close(drawn[..., 1], carried)
        assert close(drawn[..., 0], carried / carried.sum(1, keepdims=True))
    else:
        expected = second.effect(bench, kind, "hidden", (STEP,), on_all=kind == "encoder")
        assert close(drawn[[STEP], :, 1], np.nan_to_num(expected), 1e-2)


def test_the_strip_is_shaded_by_the_share_of_the_source(bench: Bench) -> None:
    chips = feeds(opened(bench, "app.py", shares="yes"))["strips"]["target"]
    found = second.product(bench, lambda kind, layer: second.shares(bench, kind, layer))
    source = found[:, : len(bench.plain.source)].sum(1)
    expected = [source[chip["first"] : chip["last"] + 1].max() for chip in chips]
    assert close(np.array([chip["shade"] for chip in chips]), np.array(expected))


# --- What if, and a page in a file ---------------------------------------------------------------


def test_what_changes_did_is_drawn_step_by_step(bench: Bench) -> None:
    changes = write_text([hide(key) for key in (0, 1, 2)])
    chart = named_charts(opened(bench, "pages/what_if.py", changes=changes))["what-if.delta"]
    drawn = array(chart["data"][0]["x" if chart["data"][0].get("orientation") == "h" else "y"])
    assert close(drawn, second.compared(bench, "cross")[0], 5e-3)


def test_why_a_token_was_written_is_written_into_a_page(bench: Bench) -> None:
    text = page(bench.run, bench.translator, why=[STEP + 1])
    first = re.search(r"<table>(.*?)</table>", text).group(1)
    rows = re.findall(r"<tr><td>.*?</td>(.*?)</tr>", first)
    drawn = np.array(
        [
            [float(cell.replace("−", "-")) for cell in re.findall(r"<td>([+−][\d.]+)</td>", row)]
            for row in rows
        ]
    )
    shares_of = second.product(bench, lambda kind, layer: second.shares(bench, kind, layer))
    columns = (
        second.by_key(bench),
        second.on_difference(bench, "cross"),
        shares_of[STEP, : len(bench.plain.source)],
    )
    assert np.abs(drawn - np.stack(columns, 1)).max() < 3e-3


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_a_cell_holds_every_measure_of_it(bench: Bench, kind: str) -> None:
    asked = RunKey(models.find("en-de"), bench.run.source_text, "greedy", bench.run.text)
    opened_view = View(asked, bench.run, None)
    key = 1
    rows = measures.of_cell(opened_view, kind, (LAYER, HEAD), (STEP, key), STEP)
    drawn = [float(value.replace("−", "-")) for _, value, _ in rows]
    place = bench.head(kind)
    carried = second.carried(bench, kind)
    effects = [bench.plain.effect(kind, (key,), way, LAYER, HEAD, STEP)[STEP] for way in WAYS]
    expected = [
        place.scores[HEAD, STEP, key],
        place.weights[HEAD, STEP, key],
        carried[-2, key],
        carried[STEP, key],
        carried[-1, 0],
        carried[STEP, key] / carried[STEP].sum(),
        *effects,
    ]
    assert drawn == pytest.approx(expected, abs=2e-3)
