"""The page of the whole model without a browser: every part, its numbers, the address, hostile tokens."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from app_pages import array, click_menu, functions, named_charts, run, said, strip, words
from closed_form import CASES
from random_models import random_model
from streamlit.testing.v1 import AppTest

from explorer.app.address import session
from explorer.app.sections.whole_model.diagram import PARTS, boxes, parts
from explorer.app.server import models
from transformer.config import TransformerConfig
from transformer.storage.card import Score, scores
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


@pytest.mark.parametrize("name", CASES)
def test_known_models_show_the_token_that_must_come_next(name: str):
    case = CASES[name]
    at = run(PAGE, model=name, text=case.sentence, step="2", part="output")
    token = case.target_tokens[1].removeprefix("▁")
    assert named_charts(at)["anatomy.output"]["data"][0]["hovertext"][0] == token
    lens = named_charts(at)["anatomy-lens"]["data"]
    assert lens[0]["text"][-1][0] == token
    assert lens[1]["text"][-4].startswith(f"<b>{token} ")
    assert "a table of its own" in words(at)
    assert "there is no bias" in words(at)


def test_the_page_stands_beside_the_paper():
    told = words(part_of("random"))
    for figure in ("6 + 6", "512", "28.4", "41.0", "3.5 days on 8 P100", "2 + 3"):
        assert figure in told
    assert "not stated in its card" in told


def test_the_test_of_the_paper_has_a_row_of_its_own_and_tied_embeddings_are_told_apart():
    told = words(run(PAGE, model="en-de", text="The dog sleeps.", part="output"))
    assert "tied" in told
    known = scores((models.BUNDLED / "en-de" / "README.md").read_text())
    shared = next(each.value for each in known if "newstest2014" in each.dataset)
    tatoeba = next(each.value for each in known if "Tatoeba" in each.dataset)
    rows = {line.split("|")[1].strip(): line for line in told.splitlines() if line.startswith("| ")}
    assert f"| {shared:g} | 27.3" in rows["BLEU on newstest2014"]
    assert f"{tatoeba:g} on Tatoeba" in rows["BLEU on other tests"]
    assert str(tatoeba) not in rows["BLEU on newstest2014"]
    assert "Only scores on one test can be compared" in told


def test_a_card_states_scores_by_test():
    card = [
        Score("newstest2014", "bleu", 3.5, ""),
        Score("FLORES", "bleu", 3.6, ""),
        Score("a", "chrf", 9, ""),
    ]
    assert functions(PAGE)["bleu"](card) == ("3.5", "3.6 on FLORES")
    assert functions(PAGE)["bleu"]([]) == ("", "")


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("source-embedding", "the encoder could not tell word orders apart"),
        ("source-embedding", "for token 2, the formula takes 1, because"),
        ("target-embedding", "the decoder would know the order from its mask alone"),
        ("decoder-forward", "a non-linear function (relu) acts on each position alone"),
    ],
)
def test_what_a_part_is_for_is_said(part: str, told: str):
    assert told in words(part_of("random", part))


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


def test_the_lists_choose_the_same_parts_and_go_into_the_address():
    at = run(PAGE, model="random")
    next(each for each in at.selectbox if each.label == "Part").select("decoder-cross").run()
    next(each for each in at.selectbox if each.label == "Layer").select(2).run()
    assert not at.exception
    assert (at.query_params["part"], at.query_params["layer"]) == ("decoder-cross", "3")
    at = click_menu(at, "app.py")
    assert not {"part", "layer"} & set(at.query_params)


@pytest.mark.parametrize(
    "params",
    [
        {"part": "heart"},
        {"part": "decoder-end", "model": "copy"},
        {"part": "encoder-forward", "layer": "99"},
        {"layer": "x"},
    ],
    ids=str,
)
def test_a_bad_address_shows_the_nearest_part(params: dict[str, str]):
    at = run(PAGE, **{"model": "random", **params})
    assert "anatomy-lens" in named_charts(at)
    assert said(at)


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
