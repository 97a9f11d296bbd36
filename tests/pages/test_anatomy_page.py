"""The page of the whole model without a browser: every part, its numbers, the address, hostile tokens."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from app_pages import array, functions, named_charts, run, strip, words
from closed_form import CASES
from random_models import random_model
from streamlit.testing.v1 import AppTest

from explorer.app.address import session
from explorer.app.sections.whole_model.diagram import PARTS, boxes, parts
from transformer.config import TransformerConfig
from transformer.storage.card import Score
from transformer.storage.directory import save_checkpoint
from transformer.translator import Translator, load_translator

PAGE = "pages/whole_model.py"
TEXT = CASES["copy"].sentence


@cache
def part_of(model: str, part: str = "", layer: str = "1") -> AppTest:
    """A part at the third step and the second token, which no test touches."""
    more = {"part": part, "layer": layer} if part else {}
    return run(PAGE, model=model, step="3", source="2", **more)


@pytest.mark.parametrize(("model", "norm"), [("random", "pre"), ("copy", "post")])
def test_every_part_is_drawn_and_proved(model: str, norm: str):
    for part in parts(TransformerConfig(vocab_size=9, norm=norm)):
        at = part_of(model, part)
        assert {"anatomy-lens", "anatomy-stream"} < set(named_charts(at)), part
        assert "verified" in words(at)
        assert "not verified" not in words(at), part
        assert "There is no" not in words(at) + " ".join(each.value for each in at.info), part
    beyond = run(PAGE, model=model, part="decoder-forward", layer="9")
    last = 3 if model == "random" else 1
    assert f"There is no decoder layer 9\\: layer {last} is shown" in " ".join(
        each.value for each in beyond.info
    )


def test_the_parts_of_the_state_are_those_of_a_pre_norm_model():
    more = ({"embedding_norm": True},)
    configs = [TransformerConfig(vocab_size=9, norm="pre", **each) for each in more]
    assert set(PARTS) == {part for config in configs for part in parts(config)}


def test_a_layer_norm_shows_the_token_s_mean_and_deviation(app_models: Path):
    at = part_of("random", "encoder-attention-norm", "2")
    shown = named_charts(at)["anatomy.norm"]
    x = strip(shown, "x")
    assert f"μ = {x.mean():.3f}" in words(at)
    assert f"σ = {x.std():.3f}" in words(at)
    norm = load_translator(app_models / "random", "cpu").model.encoder.layers[1].self_attention_residual.norm
    np.testing.assert_allclose(strip(shown, "LayerNorm(x)"), norm(torch.tensor(x.copy())), atol=1e-4)


def test_the_feed_forward_network_shows_its_most_active_units(app_models: Path):
    shown = named_charts(part_of("random", "decoder-forward", "3"))
    network = load_translator(app_models / "random", "cpu").model.decoder.layers[2].feed_forward
    units = network.activation(network.inner(torch.tensor(strip(shown["anatomy.forward"], "reads x").copy())))
    added = units.abs() * network.outer.weight.norm(dim=0)
    values, ids = added.topk(8)
    np.testing.assert_allclose(array(shown["anatomy.units"]["data"][0]["x"]), values, atol=1e-4)
    assert shown["anatomy.units"]["data"][0]["hovertext"] == [f"unit {i + 1}" for i in ids.tolist()]


def test_a_card_states_scores_by_test():
    card = [
        Score("newstest2014", "bleu", 3.5, ""),
        Score("FLORES", "bleu", 3.6, ""),
        Score("a", "chrf", 9, ""),
    ]
    assert functions(PAGE)["bleu"](card) == ("3.5", "3.6 on FLORES")
    assert functions(PAGE)["bleu"]([]) == ("", "")


def test_a_click_on_a_box_opens_its_part_and_an_empty_one_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    take = functions(PAGE)["take"]
    monkeypatch.setattr(session, "change", lambda **values: opened.append(values["part"]))
    for points in (
        [{"customdata": "output"}],
        [{"customdata": ["encoder-forward"]}],
        [],
        [{"customdata": "x"}],
    ):
        take(points[0]["customdata"] if points else None)
    take(None)
    assert opened == ["output", "encoder-forward"]


def test_what_the_config_says_is_drawn():
    config = TransformerConfig(vocab_size=8000, d_model=256, d_ff=1024, norm="pre")
    encoder, decoder = boxes(config, adds_positions=False)
    shapes = {box.part: (box.label, box.shape) for box in (*encoder, *decoder)}
    assert shapes["source-embedding"] == ("embedding", "8,000 × 256")
    assert shapes["decoder-cross"] == ("cross-attention", "8 heads × 32")
    assert shapes["encoder-forward"] == ("feed-forward", "256 → 1,024 → 256")
    assert shapes["output"] == ("linear, softmax", "256 → 8,000")
    assert [box.label for box in encoder][1:4] == ["LayerNorm", "self-attention", "+"]
    post = boxes(TransformerConfig(vocab_size=9))[0]
    assert [box.label for box in post][1:4] == ["self-attention", "+", "LayerNorm"]
    assert len(post) == 7


def test_other_positions_biases_and_activations_are_said(own_models: Path, translator: Translator):
    changes = {"positions": "rotary", "activation": "gelu", "output_bias": True, "norm": "post"}
    model = random_model(vocab_size=translator.config.vocab_size, scaled_embeddings=False, **changes)
    save_checkpoint(own_models / "other", model.config, model.state_dict(), translator.tokenizer)
    told = words(run(PAGE, model="other", part="source-embedding"))
    assert "as it is: this model does not scale it" in told
    assert "act inside attention" in told
    assert "not verified" not in told
    at = run(PAGE, model="other", part="output")
    assert "a learned bias is added" in words(at)
    assert "itself, transposed (tied" in words(at)
    assert "The output matrix and the softmax" in words(at)
    at = run(PAGE, model="other", part="decoder-forward")
    assert r"\mathrm{gelu}" in " ".join(each.value for each in at.latex)
    assert "not verified" not in words(at)
