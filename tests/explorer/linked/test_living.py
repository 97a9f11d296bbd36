"""A living page holds what the app sends: every head, measures, a second run; its place, texts and
size."""

import html
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import app_pages
import numpy as np
import pytest
from living_pages import Opened
from random_models import random_language_model

from explorer import PageError, page, show
from explorer.figures.maps.heatmap import levels, pool
from explorer.lenses.words.reading import Reading, read_view
from explorer.linked.living import kinds
from explorer.linked.living.beside import in_words, told_apart, unchanged
from explorer.linked.living.kinds import FINE, SCORED, WHOLE
from explorer.linked.living.packed import CellError, cells, scores
from explorer.linked.living.page import POLICY
from explorer.linked.living.scripts import script, style
from explorer.linked.view.home import head_map
from explorer.linked.view.strips import followed
from transformer import Sampling, Translation, Translator, load_translator, save_trace
from transformer import interventions as do
from transformer.exports.npz import load_trace
from transformer.run import NotCapturedError

MODEL = Path(__file__).parents[3] / "assets/models/en-pt"
TEXT = "The old house is not for sale."
OFF = do.ablate("cross", 1, 2)
HOSTILE = "</script><script>x()</script><img onerror=x()>\x00 ]]> <!--"


@pytest.fixture(scope="module")
def en_pt() -> Translator:
    return load_translator(MODEL)


@pytest.mark.parametrize("sort", ["changed", "a text", "an opened file"])
def test_a_page_holds_every_head_of_a_run(translator: Translator, tmp_path: Path, sort: str):
    run = translator.translate(TEXT, max_length=5, interventions=[OFF] * (sort == "changed"))
    if sort == "a text":
        run = writer(translator).generate("one two", max_length=9)
    elif sort == "an opened file":
        save_trace(run, tmp_path / "run.npz")
        run = load_trace(tmp_path / "run.npz")
    holds(run)


def test_a_page_whose_labels_are_reversed_is_not_verified(translator: Translator, monkeypatch):
    run = translator.translate(TEXT, max_length=5)
    assert "✓ verified: every head of every layer" in page(run)

    def reversed_labels(*given: Any) -> Any:
        read = read_view(*given)
        return replace(read, key_tokens=read.key_tokens[::-1])

    monkeypatch.setattr(kinds, "read_view", reversed_labels)
    assert "✗ not verified: every head of every layer" in page(run)


def writer(translator: Translator) -> Translator:
    model = random_language_model(vocab_size=translator.tokenizer.vocab_size, trained_length=30)
    return Translator(model, translator.tokenizer, name="writer")


def holds(run: Translation) -> None:
    """Whether a page has the weights of all heads to three decimals, and the texts that the app
    sends."""
    opened = Opened(page(run))
    assert list(opened.run["kinds"]) == list(run.config.sites)
    for kind, (layers, heads) in run.config.sizes.items():
        weights = opened.weights(kind)
        hundredths = opened.scores(kind)
        for layer in range(layers):
            for head in range(heads):
                view = run.head(kind, layer, head)
                assert (weights[layer, head] == np.rint(1000 * view.weights.astype(float))).all()
                assert np.abs(hundredths[layer, head] / 100 - view.scores).max() <= 0.0051
                agrees(opened, run, kind, (layer, head))
    if "cross" in opened.run["kinds"]:
        told = opened.run["kinds"]["cross"]["follow"][1][0]
        assert told == followed(run.weights("cross", 1, 0))


def agrees(opened: Opened, run: Translation, kind: str, head: tuple[int, int]) -> None:
    """Compares the feed of a head with that of the app, but for the numbers of its cells."""
    view = read_view(run.map(kind, *head), Reading())
    last = len(opened.run["kinds"][kind]["own"]) - 1
    expected: dict[str, Any] = json.loads(
        json.dumps({**head_map(run.model, run, view, view.weights.shape, (last, 0))})
    )
    figure = json.loads(expected["figure"])
    assert figure["data"][0]["z"]["shape"] == ", ".join(map(str, view.weights.shape))
    figure["data"][0] |= {"z": None, "customdata": None}
    assert opened.feed(kind, *head) == {
        "off": False,
        **expected,
        "acts": ["save"],
        "figure": figure,
    }


@pytest.mark.parametrize("text", [TEXT, "He lives in a big white house."])
def test_a_page_opens_where_the_app_opens_it_with_the_same_strips_and_bars(
    en_pt: Translator, text: str
):
    at = app_pages.run(model="en-pt", text=text)
    sent = app_pages.feeds(at)
    opened = Opened(page(en_pt.translate(text), en_pt, directory=MODEL)).run
    layer, head = opened["place"]["heads"]["cross"]
    assert opened["place"]["step"] == app_pages.view(at)["step"]
    assert (layer, head) == at.session_state["state"].cross
    strips = {
        **opened["shown"]["strips"],
        "follow": opened["kinds"]["cross"]["follow"][layer][head],
    }
    del strips["trace"], strips["claim"]
    assert {name: sent["strips"][name] for name in strips} == strips
    aligner = "source words by the alignment head (head 6 of layer 1, row that reads the word)"
    words = aligner if text == TEXT else "English words of the example"
    assert strips["glossed"] == f"Under the words: {words}."
    bars = opened["shown"]["next"]
    same = ("names", "shares", "logs", "chosen", "title", "about", "follows")
    assert {name: sent["next"][name] for name in same} == {name: bars[name] for name in same}
    assert bars["ids"] == []


def test_a_page_says_where_it_comes_from(en_pt: Translator):
    opened = Opened(page(en_pt.translate(TEXT), en_pt, directory=MODEL, place='step=2&"><b>'))
    assert html.unescape(opened.place) == 'step=2&"><b>'
    lines = " ".join(opened.run["said"]["proof"])
    for part in ("en-pt", r"SHA-256 [0-9a-f]{64} ", "greedy", "verified", "row-sum error"):
        assert re.search(part, lines), part
    assert opened.run["said"]["about"][0].startswith("A translation written by the model en-pt")
    assert "was not given" in page(en_pt.translate(TEXT))
    assert opened.run["place"]["heads"] == {
        kind: list(at) for kind, at in (en_pt.heads or {})["default"].items()
    }


def test_texts_of_a_page_are_escaped_and_the_policy_allows_no_request(translator: Translator):
    run = translator.translate(HOSTILE, max_length=5)
    made = page(run)
    assert made.count("<script") == made.count("</script>") == 2
    assert "<img" not in made
    assert html.escape(POLICY) in made
    assert POLICY.startswith("default-src 'none'")
    assert html.escape(run.source_text.strip()) in made
    assert not re.search(r'\b(?:src|href)="', made.partition("<script")[0])


def test_a_long_run_has_no_scores_and_a_longer_one_the_steps_of_the_colours(translator: Translator):
    long = Opened(page(translator.force("one " * SCORED, "two")))
    kinds = long.run["kinds"]
    assert [kinds[kind]["scored"] for kind in ("encoder", "decoder", "cross")] == [
        False,
        True,
        False,
    ]
    assert "score" not in json.dumps(long.feed("encoder", 0, 0)["figure"])
    run = translator.force("one " * FINE, "two")
    made = Opened(page(run))
    assert (
        np.abs(made.weights("encoder")[1, 0] / 1000 - run.weights("encoder", 1, 0)).max() < 0.0025
    )
    assert "[0]:.2f}" in json.dumps(made.feed("encoder", 1, 0)["figure"])
    said = [" ".join(each.run["said"]["proof"]) for each in (long, made)]
    assert "scores before the mask are in pages of up to" in said[0]
    assert "in the steps of the colours" in said[1]


def test_a_longer_one_has_tiles_of_all_heads_and_the_chosen_ones_whole(translator: Translator):
    run = translator.force("one " * WHOLE, "two")
    made = Opened(page(run, place="step=2&cross=1.1", heads="encoder=2.2&encoder=1.1"))
    whole = {"encoder": [[0, 0], [1, 1]], "decoder": [[2, 0]], "cross": [[0, 0]]}
    assert {kind: told["whole"] for kind, told in made.run["kinds"].items()} == whole
    assert made.run["place"]["heads"] == {"encoder": [1, 1], "decoder": [2, 0], "cross": [0, 0]}
    for kind, (layers, heads) in run.config.sizes.items():
        for layer, head in np.ndindex(layers, heads):
            view = run.head(kind, layer, head)
            pooled = pool(levels(view.weights, view.mask), 32)[0]
            assert (made.tiles[kind][layer, head] == pooled).all()
            own = made.run["kinds"][kind]["own"][layer][head]
            assert (own is not None) is ([layer, head] in whole[kind])
        for at, weights in zip(whole[kind], made.weights(kind), strict=True):
            assert np.abs(weights / 1000 - run.weights(kind, *at)).max() < 0.0025
    assert made.run["kinds"]["encoder"]["shared"]["choice"]["only"] == whole["encoder"]
    assert "whole in this file: L1 H1, L2 H2;" in made.run["kinds"]["encoder"]["tiles"]["opens"]


def test_a_head_that_a_run_has_not_and_a_run_that_no_page_can_hold_are_refused(
    translator: Translator,
):
    run = translator.force("one", "two")
    for heads in ("cross=9.1", "cross=1", "step=2", "cross=0.1"):
        with pytest.raises(PageError, match=re.escape(f"no head {heads};")):
            page(run, heads=heads)
    with pytest.raises(PageError, match="at most 1,024 tokens a side; this one has 1,025"):
        page(replace(run, source_tokens=("one",) * 1025))
    with pytest.raises(NotCapturedError):
        page(translator.translate("one", max_length=3, capture=False))


def test_a_notebook_gets_the_page_in_a_frame(translator: Translator):
    run = translator.translate("one two", max_length=4)
    shown = show(run, place="step=2", height=500)
    frame = r'<iframe srcdoc="([^"]*)" style="([^"]*)" (.*?)>(.*)</iframe>'
    found = re.fullmatch(frame, shown._repr_html_(), re.S)
    assert found is not None
    assert html.unescape(found[1]) == shown.page == page(run, place="step=2")
    assert "height: 500px" in found[2]
    assert 'allow="fullscreen"' in found[3]
    assert "trusted" in found[4]
    assert len(repr(shown)) < 80


# --- the numbers of its cells --------------------------------------------------------------------


def test_every_thousandth_comes_back_in_colours_of_a_map_and_masked_cells_are_zero():
    every = np.arange(1001).reshape(1, 1, 7, 143)
    found, beside = cells((every / 1000).astype(np.float32), np.ones(every.shape, bool))
    assert ((1000 * (found.astype(int) - 1) / 254 + 0.5).astype(int) + beside - 128 == every).all()
    assert {*np.unique(beside)} <= {126, 127, 128, 129, 130}
    weights = np.random.default_rng(0).dirichlet(np.ones(9), (2, 3, 5)).astype(np.float32)
    mask = np.broadcast_to(np.tri(5, 9, 2, bool), weights.shape)
    found, beside = cells(np.where(mask, weights, 0), mask)
    assert (found == levels(np.where(mask, weights, 0), mask)).all()
    assert (beside[~mask] == 128).all()
    for wrong in (np.nan, -0.2, 1.5, np.inf):
        with pytest.raises(CellError, match="from 0 to 1"):
            cells(np.full((1, 1, 2, 2), wrong, np.float32), np.ones((1, 1, 2, 2), bool))


def test_scores_come_back_to_two_decimals_unless_one_is_too_large():
    numbers = np.random.default_rng(1).normal(0, 40, (2, 2, 6, 6)).astype(np.float32)
    found = scores(numbers)
    assert found is not None
    low, high = (each.astype(int) for each in found)
    assert np.abs((low + 256 * high - 2**15) / 100 - numbers).max() <= 0.0051
    for wrong in (400.0, -400.0, np.nan, np.inf):
        numbers[0, 0, 0, 0] = wrong
        assert scores(numbers) is None


# --- measures ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(en_pt: Translator) -> Opened:
    return Opened(
        page(en_pt.translate(TEXT), en_pt, directory=MODEL, measures=("carried", "effect"))
    )


@pytest.mark.parametrize("measure", ["carried", "effect"])
def test_measured_maps_are_those_that_the_app_sends(measured: Opened, measure: str):
    sent = app_pages.feeds(app_pages.run(model="en-pt", text=TEXT, measure=measure))
    for kind, opens in measured.run["place"]["heads"].items():
        told = sent[kind]
        found = measured.run["kinds"][kind]["measures"][measure]
        assert told["head"] == opens
        sizes = measured.run["kinds"][kind]["size"]
        assert len(found["heads"]) == (sizes[0] * sizes[1] if measure == "carried" else 1)
        figure = json.loads(told.pop("figure"))
        drawn = figure["data"][0]
        colours, numbers = (app_pages.array(drawn[name]) for name in ("z", "customdata"))
        at = found["heads"].index(opens)
        kept = measured.measures[kind][measure]
        assert (kept[0][at] == colours).all()
        assert (kept[2][at] == numbers[..., 1]).all()
        shares, beside = (each.astype(int) for each in kept[:2])
        thousandths = (1000 * np.maximum(shares - 1, 0) / 254 + 0.5).astype(int) + beside - 128
        assert np.abs(thousandths[at] - 1000 * numbers[..., 0].astype(float)).max() <= 0.5001
        own: dict[str, Any] = {**measured.run["kinds"][kind]["shared"], **found["own"][at]}
        drawn |= {"z": None, "customdata": None}
        assert json.loads(own.pop("figure")) == figure
        for each in (
            "caption",
            "badge",
            "sentences",
            "notes",
            "alt",
            "legend",
            "quantity",
            "limit",
        ):
            assert own[each] == told[each], each


def test_what_cannot_be_measured_is_said(translator: Translator):
    run, changed = (
        translator.translate("one", max_length=3, interventions=each) for each in ((), [OFF])
    )
    for asked, message in (
        ((run, None, ("carried",)), "with the model"),
        ((run, translator, ("mass",)), "no measure 'mass'"),
        ((changed, translator, ("carried",)), "without changes"),
    ):
        with pytest.raises(PageError, match=message):
            page(asked[0], asked[1], measures=asked[2])
    made = page(run, translator, measures=("carried",), beside=changed)
    there = ["measures" in Opened(made, number).run["kinds"]["cross"] for number in ("", "-2")]
    assert there == [True, False]


# --- a second run --------------------------------------------------------------------------------

WORDS = "one two three"
WAYS: dict[str, Callable[..., Translation]] = {
    "greedy": lambda model, changes: model.translate(WORDS, max_length=9, interventions=changes),
    "beam": lambda model, changes: model.translate(WORDS, beam_size=3, interventions=changes),
    "sampled": lambda model, changes: model.translate(
        WORDS, sample=Sampling(seed=3), interventions=changes
    ),
    "forced": lambda model, changes: model.force(WORDS, "one two", interventions=changes),
}


def test_two_runs_of_a_page_are_those_of_a_page_of_each(translator: Translator):
    one = translator.translate(WORDS, max_length=7)
    other = translator.translate("four", max_length=4)
    made = page(one, beside=other)
    steps = max(len(run.target_tokens) for run in (one, other))
    for run, number in ((one, ""), (other, "-2")):
        found = Opened(made, number)
        alone = Opened(page(run))
        pair = {"view": f"home{number}", "paired": True, "steps": steps}
        assert found.run == {**alone.run, "spec": {**alone.run["spec"], **pair}}
        for kind, own in alone.cells.items():
            assert all((a == b).all() for a, b in zip(found.cells[kind], own, strict=True))
    assert ">A · “one two three”<" in made
    assert show(one, beside=other).page == made


@pytest.mark.parametrize("way", WAYS)
def test_a_changed_run_has_the_run_without_its_changes_beside_it(translator: Translator, way: str):
    changed = WAYS[way](translator, [OFF])
    plain = WAYS[way](translator, ())
    found = unchanged(changed, translator)
    assert (found.target_ids, found.method, found.interventions) == (
        plain.target_ids,
        plain.method,
        (),
    )
    made = page(changed, translator)
    assert Opened(made).run["said"]["changes"] == [f"Changed: {OFF}."]
    weights = np.rint(1000 * plain.weights("cross", 1, 1).astype(float))
    assert (Opened(made, "-2").weights("cross")[1, 1] == weights).all()
    assert 'id="run-2"' not in page(changed)


def test_what_a_run_does_not_make_again_is_read_by_the_model_as_it_is(translator: Translator):
    drawn = translator.translate(
        WORDS, sample=Sampling(seed=3, temperature=3.0), interventions=[OFF]
    )
    found = unchanged(drawn, translator)
    assert (found.method, found.target_ids) == ("forced", drawn.target_ids)
    model = writer(translator)
    off = do.ablate("decoder", 0, 0)
    found = unchanged(model.generate("one two", max_length=9, interventions=[off]), model)
    assert found.target_ids == model.generate("one two", max_length=9).target_ids


def test_runs_are_told_apart_by_what_differs_and_a_change_names_the_word_behind_a_position(
    translator,
):
    one, changed = (
        translator.translate("one", max_length=3, interventions=each) for each in ((), [OFF])
    )
    other = translator.translate("two " * 40, max_length=3)
    forced = [translator.force("one", text) for text in ("two", "three")]
    pairs = [(one, one), (changed, one), (one, forced[0]), (changed, other), (*forced,)]
    assert [told_apart(*pair) for pair in pairs] == [
        ["A", "B"],
        ["A · changed", "B · as it is"],
        ["A · greedy", "B · forced"],
        ["A · “one”", f"B · “{'two ' * 14}…”"],
        ["A · “two”", "B · “three”"],
    ]
    run = translator.translate(WORDS, max_length=3)
    token = run.source_tokens[1].removeprefix("▁")
    assert f"source token 2, “{token}”, is hidden" in in_words(do.hide(1), run)
    assert in_words(do.hide(1)) == str(do.hide(1))
    assert in_words(do.choose(2, "▁seinen")) == "step 3 writes “seinen”"


# --- why -----------------------------------------------------------------------------------------


def test_a_step_is_explained_by_tables_whose_numbers_add_up(en_pt: Translator):
    run = en_pt.translate(TEXT)
    made = page(run, en_pt, why=(2, 4))
    found = [
        part.partition("</details>")[0]
        for part in made.split('<details class="living-why" open>')[1:]
    ]
    assert [each.partition("</summary>")[0].rpartition(", ")[2] for each in found] == [
        "step 2?",
        "step 4?",
    ]
    for number, text in zip((1, 3), found, strict=True):
        step = run.steps[number]
        rival = next(
            alternative
            for alternative in step.alternatives
            if alternative.token_id != step.token_id
        )
        apart = step.log_prob - rival.log_prob
        assert f"over “{rival.token.lstrip('▁')}” by {apart:.2f};" in html.unescape(text)
        by_token, written = re.findall("<table>(.*?)</table>", text.replace("−", "-"))
        rows = [
            re.findall("<td>(.*?)</td>", html.unescape(row))
            for row in by_token.split("</tr>")[1:-1]
        ]
        assert [row[0] for row in rows] == [
            source_token.lstrip("▁") for source_token in run.source_tokens
        ]
        assert sum(abs(float(row[2])) for row in rows) > 0
        assert 0 < sum(float(row[3]) for row in rows) < 1
        most = max(rows, key=lambda row: abs(float(row[1])))[0]
        assert f"was read at “{most}”" in html.unescape(text)
        assert sum(map(float, re.findall("<td>([+-][0-9.]+)</td>", written))) == pytest.approx(
            apart, abs=0.02
        )
        assert text.endswith("<p>✓ sums up</p>")


def test_what_cannot_be_explained_is_refused(translator: Translator):
    run = translator.translate("one two")
    text = writer(translator).generate("one two", max_length=5)
    for refused, model, step, why in (
        (run, None, 1, "is found with the model, which this page was not given"),
        (run, translator, len(run.steps) + 1, f"this run has {len(run.steps)}"),
        (run, translator, 0, "There is no step 0"),
        (text, writer(translator), 1, "a language model reads none"),
    ):
        with pytest.raises(PageError, match=why):
            page(refused, model, why=(step,))


# --- apart ---------------------------------------------------------------------------------------


def test_importing_the_room_loads_neither_the_app_nor_streamlit():
    script = "import os, sys, explorer; explorer.page; explorer.show; "
    script += (
        "print({'ui', 'streamlit', 'torch'} & {*sys.modules}, os.environ.get('OMP_NUM_THREADS'))"
    )
    command = [sys.executable, "-c", script]
    alone = {"PATH": "", "PYTHONPATH": "."}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=alone)
    assert done.stdout.strip() == "set() None"


BESIDE = MODEL.parents[2] / "docs/pages/en-pt.html"
"""The page beside the documents."""


def test_the_page_beside_the_documents_is_small_and_has_the_scripts_of_today():
    made = BESIDE.read_text(encoding="utf-8")
    assert len(made) < 300_000
    assert "✓ verified" in Opened(made).run["said"]["proof"][1]
    current = all(
        part in made for part in (f"<style>\n{style()}\n</style>", f"\n{script()}\n</script>")
    )
    again = f'python -m explorer page --model {MODEL} "He lives in a big white house." --output {BESIDE}'
    assert current, f"The page is behind the scripts; write it again: {again}"
