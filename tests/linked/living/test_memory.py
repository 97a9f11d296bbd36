from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from living_pages import Opened

from lenses.inside.unit_memory import unit_memory
from linked import page
from linked.living.memory import memory_of
from transformer import Translator, load_translator
from transformer.runs.retrace import retrace

MODEL = Path(__file__).parents[3] / "assets/models/firefox-en-pt"


@pytest.fixture(scope="module")
def firefox() -> Translator:
    return load_translator(MODEL)


def test_a_page_has_the_memory_that_the_app_draws(firefox: Translator):
    run = firefox.translate("The house is old.")
    opened, again = Opened(page(run, firefox)), retrace(firefox, run)
    tokens = len(run.decoder_input_tokens)
    assert opened.run["spec"]["plots"] == ["cross", "encoder", "decoder", "next"]
    assert {stop["plot"] for stop in opened.run["shown"]["strips"]["tour"]} == {
        *("encoder", "controls", "cross", "next")
    }
    for layer in range(run.config.stacks["decoder"].n_layers):
        share = unit_memory(firefox.model, again, layer).share
        levels, thousandths = opened.cells["decoder"][0][layer, 0], opened.weights("decoder")[layer, 0]
        assert (thousandths == np.rint(1000 * share.astype(float))).all()
        assert ((levels == 0) == ~np.tri(tokens, dtype=bool)).all()
        feed = opened.feed("decoder", layer, 0)
        assert feed["title"] == f"Memory, layer {layer + 1}"
        assert feed["badge"]["text"] == "✓ from a verified trace"
        largest = int(share[2].argmax())
        assert feed["sentences"][2][3] == run.decoder_input_tokens[largest].removeprefix("▁")
    assert "attention" not in feed["caption"]
    assert "It is memory, not attention" in feed["limit"]


def test_without_the_model_or_the_unit_there_is_none(firefox: Translator, translator: Translator):
    run = firefox.translate("The house is old.")
    assert "decoder" not in Opened(page(run)).run["kinds"]
    assert memory_of(translator, translator.translate("one", max_length=3)) is None
