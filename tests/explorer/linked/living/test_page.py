from __future__ import annotations

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

from explorer import PageError, page
from explorer.figures.maps.heatmap import levels, pool
from explorer.lenses.words.reading import Reading, read_view
from explorer.linked.living.kinds import FINE, SCORED, WHOLE
from explorer.linked.living.page import POLICY
from explorer.linked.living.scripts import script, style
from explorer.linked.view import followed
from explorer.linked.view.home import head_map
from transformer import Sampling, Translation, Translator, load_translator, save_trace
from transformer import interventions as do
from transformer.exports.npz import load_trace
from transformer.run import NotCapturedError

MODEL = Path(__file__).parents[4] / "assets/models/en-pt"
TEXT = "The old house is not for sale."
OFF = do.ablate("cross", 1, 2)
HOSTILE = "</script><script>x()</script><img onerror=x()>\x00 ]]> <!--"


@pytest.fixture(scope="module")
def en_pt() -> Translator:
    return load_translator(MODEL)


def imported(run: Translation, folder: Path) -> Translation:
    save_trace(run, folder / "run.npz")
    return load_trace(folder / "run.npz")


RUNS: dict[str, Callable[[Translator], Translation]] = {
    "greedy": lambda translator: translator.translate(TEXT, max_length=9),
    "beam": lambda translator: translator.translate(TEXT, beam_size=3, max_length=6),
    "sampled": lambda translator: translator.translate(TEXT, sample=Sampling(seed=7), max_length=9),
    "forced": lambda translator: translator.force(TEXT, "one two"),
    "changed": lambda translator: translator.translate(TEXT, max_length=5, interventions=[OFF]),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_page_holds_every_head_of_a_run(translator: Translator, name: str):
    holds(RUNS[name](translator))


def test_a_page_holds_every_head_of_a_text_and_of_an_opened_file(translator: Translator, tmp_path: Path):
    model = random_language_model(vocab_size=translator.tokenizer.vocab_size, trained_length=30)
    generator = Translator(model, translator.tokenizer, name="writer")
    holds(generator.generate("one two", max_length=9))
    holds(imported(RUNS["greedy"](translator), tmp_path))


def holds(run: Translation) -> None:
    """Whether a page has the weights of all heads to three decimals, and the texts that the app sends."""
    opened = Opened(page(run))
    assert list(opened.run["kinds"]) == list(run.config.sites)
    for kind, (layers, heads) in run.config.sizes.items():
        weights, scores = opened.weights(kind), opened.scores(kind)
        for layer in range(layers):
            for head in range(heads):
                view = run.head(kind, layer, head)
                assert (weights[layer, head] == np.rint(1000 * view.weights.astype(float))).all()
                assert np.abs(scores[layer, head] / 100 - view.scores).max() <= 0.0051
                shown(opened, run, kind, (layer, head))
    if "cross" in opened.run["kinds"]:
        told = opened.run["kinds"]["cross"]["follow"][1][0]
        assert told == followed(run.weights("cross", 1, 0))


def shown(opened: Opened, run: Translation, kind: str, head: tuple[int, int]) -> None:
    """Compares the feed of a head with that of the app, but for the numbers of its cells."""
    view = read_view(run.map(kind, *head), Reading())
    last = len(opened.run["kinds"][kind]["own"]) - 1
    expected: dict[str, Any] = json.loads(
        json.dumps({**head_map(run.model, run, view, view.weights.shape, (last, 0))})
    )
    figure = json.loads(expected["figure"])
    assert figure["data"][0]["z"]["shape"] == ", ".join(map(str, view.weights.shape))
    figure["data"][0] |= {"z": None, "customdata": None}
    assert opened.feed(kind, *head) == {"off": False, **expected, "acts": ["png", "svg"], "figure": figure}


def test_the_feeds_are_those_that_the_app_sends(en_pt: Translator):
    at = app_pages.run(model="en-pt", text=TEXT, step="3", cross="5.3")
    sent, opened = app_pages.feeds(at), Opened(page(en_pt.translate(TEXT), en_pt, directory=MODEL))
    for kind, head in {"cross": (4, 2), "encoder": None, "decoder": None}.items():
        told = sent[kind]
        layer, number = head or told["head"]
        figure = json.loads(told["figure"])
        cells = app_pages.array(figure["data"][0]["z"]), app_pages.array(figure["data"][0]["customdata"])
        assert (cells[0] == opened.cells[kind][0][layer, number]).all()
        assert (np.rint(1000 * cells[1][..., 0].astype(float)) == opened.weights(kind)[layer, number]).all()
        figure["data"][0] |= {"z": None, "customdata": None}
        found = opened.feed(kind, layer, number)
        assert found["choice"].pop("first") in told["choice"].pop("first")
        assert {**told, "figure": figure, "off": False} == {
            **{name: told[name] for name in ("view", "name", "trace", "acts")},
            **{name: value for name, value in found.items() if name not in {"trace", "acts"}},
        }
    strips = {**opened.run["shown"]["strips"], "follow": opened.run["kinds"]["cross"]["follow"][4][2]}
    assert {name: sent["strips"][name] for name in strips if name != "trace"} == {
        name: value for name, value in strips.items() if name != "trace"
    }
    bars = opened.run["shown"]["next"]
    same = ("names", "shares", "logs", "chosen", "title", "about", "follows")
    assert {name: sent["next"][name] for name in same} == {name: bars[name] for name in same}
    assert bars["ids"] == []


@pytest.mark.parametrize("text", [TEXT, "He lives in a big white house."])
def test_a_sentence_opens_where_the_app_opens_it_with_the_same_words_under_it(en_pt: Translator, text: str):
    at = app_pages.run(model="en-pt", text=text)
    state, sent = at.session_state["state"], app_pages.feeds(at)["strips"]
    opened = Opened(page(en_pt.translate(text), en_pt, directory=MODEL)).run
    cross = tuple(opened["place"]["heads"]["cross"])
    assert (opened["place"]["step"], cross) == (app_pages.view(at)["step"], state.cross)
    strips = opened["shown"]["strips"]
    assert (strips["target"], strips["glossed"]) == (sent["target"], sent["glossed"])
    head = "source words by the alignment head (head 6 of layer 1, row that reads the word)"
    assert (
        strips["glossed"] == f"Under the words: {head if text == TEXT else 'English words of the example'}."
    )


def test_a_page_says_where_it_comes_from(en_pt: Translator):
    run = en_pt.translate(TEXT)
    made = page(run, en_pt, directory=MODEL, place='step=2&"><b>')
    opened = Opened(made)
    assert html.unescape(opened.place) == 'step=2&"><b>'
    assert opened.run["said"]["about"] == [
        "A translation written by the model en-pt (English → Portuguese), with every attention head: "
        "one file of Attention explorer, which needs no network."
    ]
    lines = " ".join(opened.run["said"]["proof"])
    for part in ("en-pt", "SHA-256", "greedy", "verified", "row-sum error", "attention-explorer"):
        assert part in lines
    assert re.search(r"SHA-256 [0-9a-f]{64} ", lines)
    assert "was not given" in page(run)
    assert opened.run["place"]["heads"] == {
        kind: list(at) for kind, at in (en_pt.heads or {})["default"].items()
    }
    assert any(chip["gloss"] for chip in opened.run["shown"]["strips"]["target"])
    assert opened.run["kinds"]["cross"]["shared"]["choice"]["roles"]


def test_texts_of_a_page_are_escaped_and_the_policy_allows_no_request(translator: Translator):
    run = translator.translate(HOSTILE, max_length=5)
    made = page(run)
    assert made.count("<script") == made.count("</script>") == 2
    assert "<img" not in made
    assert html.escape(POLICY) in made
    assert POLICY.startswith("default-src 'none'")
    assert html.escape(run.source_text.strip()) in made
    assert not re.search(r'\b(?:src|href)="', made.partition("<script")[0])


def test_scores_stay_out_of_pages_of_long_runs_and_these_say_so(translator: Translator):
    long = translator.force("one " * SCORED, "two")
    made = Opened(page(long))
    kinds = made.run["kinds"]
    assert [kinds[kind]["scored"] for kind in ("encoder", "decoder", "cross")] == [False, True, False]
    assert "score" not in json.dumps(made.feed("encoder", 0, 0)["figure"])
    assert "scores before the mask are in pages of up to" in " ".join(made.run["said"]["proof"])


def test_a_long_run_has_the_steps_of_the_colours(translator: Translator):
    run = translator.force("one " * FINE, "two")
    made = Opened(page(run))
    assert np.abs(made.weights("encoder")[1, 0] / 1000 - run.weights("encoder", 1, 0)).max() < 0.0025
    assert "[0]:.2f}" in json.dumps(made.feed("encoder", 1, 0)["figure"])
    assert "in the steps of the colours" in made.run["said"]["proof"][-1]


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
    assert "whole in this file: L1 H1, L2 H2;" in made.run["kinds"]["encoder"]["tiles"]["caption"]
    assert "here each is a pooled tile" in made.run["said"]["proof"][-1]


@pytest.mark.parametrize("heads", ["cross=9.1", "cross=1", "step=2", "cross=0.1"])
def test_a_head_that_a_run_has_not_is_named(translator: Translator, heads: str):
    with pytest.raises(PageError, match=re.escape(f"no head {heads};")):
        page(translator.force("one", "two"), heads=heads)


def test_a_run_that_no_page_can_hold_is_refused(translator: Translator):
    long = replace(translator.force("one", "two"), source_tokens=("one",) * 1025)
    with pytest.raises(PageError, match="at most 1,024 tokens a side; this one has 1,025"):
        page(long)
    with pytest.raises(NotCapturedError):
        page(translator.translate("one", max_length=3, capture=False))


def test_importing_the_room_loads_neither_the_app_nor_streamlit():
    script = "import os, sys, explorer; explorer.page; explorer.show; "
    script += "print({'ui', 'streamlit', 'torch'} & {*sys.modules}, os.environ.get('OMP_NUM_THREADS'))"
    command, alone = [sys.executable, "-c", script], {"PATH": "", "PYTHONPATH": "."}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=alone)
    assert done.stdout.strip() == "set() None"


BESIDE = MODEL.parents[2] / "docs/pages/en-pt.html"
"""The page beside the documents."""


def test_the_page_beside_the_documents_is_small():
    assert BESIDE.stat().st_size < 300_000
    opened = Opened(BESIDE.read_text(encoding="utf-8"))
    assert "✓ verified" in opened.run["said"]["proof"][1]


def test_the_page_beside_the_documents_has_the_scripts_of_today():
    made = BESIDE.read_text(encoding="utf-8")
    current = all(part in made for part in (f"<style>\n{style()}\n</style>", f"\n{script()}\n</script>"))
    again = f'python -m explorer page --model {MODEL} "He lives in a big white house." --output {BESIDE}'
    assert current, f"The page is behind the scripts; write it again: {again}"
