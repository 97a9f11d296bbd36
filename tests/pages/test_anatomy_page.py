"""The page of the whole model: every part is proved, two against the model, the diagram, another
model."""

import re
from pathlib import Path

import pytest
from app_pages import functions, named_charts, run, words
from random_models import random_model

from explorer.app.address import session
from explorer.app.address.page_values import PARTS
from explorer.app.sections.whole_model.diagram import boxes, parts
from transformer.config import TransformerConfig
from transformer.storage.card import Score
from transformer.storage.directory import save_checkpoint
from transformer.translator import Translator

PAGE = "pages/whole_model.py"


@pytest.mark.parametrize(("model", "norm"), [("random", "pre"), ("copy", "post")])
def test_every_part_is_drawn_and_proved(model: str, norm: str):
    for part in parts(TransformerConfig(vocab_size=9, norm=norm)):
        at = run(PAGE, model=model, step="3", source="2", part=part, layer="1")
        assert {"anatomy-lens", "anatomy-stream"} < set(named_charts(at)), part
        assert "verified" in words(at)
        assert "not verified" not in words(at), part
    more = TransformerConfig(vocab_size=9, norm="pre", embedding_norm=True)
    assert set(PARTS) == set(parts(more)), "the parts of the state"


def test_a_card_states_scores_by_test():
    three = ("newstest2014", "bleu", 3.5), ("FLORES", "bleu", 3.6), ("a", "chrf", 9)
    assert functions(PAGE)["bleu"]([Score(*each, "") for each in three]) == ("3.5", "3.6 on FLORES")
    assert functions(PAGE)["bleu"]([]) == ("", "")


def test_a_click_on_a_box_opens_its_part_and_an_empty_one_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    opened: list[str] = []
    take = functions(PAGE)["take"]
    monkeypatch.setattr(session, "change", lambda **values: opened.append(values["part"]))
    for clicked in ("output", ["encoder-forward"], None, "x"):
        take(clicked)
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
    model = random_model(
        vocab_size=translator.config.vocab_size, scaled_embeddings=False, **changes
    )
    save_checkpoint(own_models / "other", model.config, model.state_dict(), translator.tokenizer)
    for part, told in {
        "source-embedding": ["as it is: this model does not scale it", "act inside attention"],
        "output": [
            "a learned bias is added",
            "itself, transposed (tied",
            "The output matrix and the softmax",
        ],
        "decoder-forward": [r"\mathrm{gelu}"],
    }.items():
        at = run(PAGE, model="other", part=part)
        said = words(at) + " ".join(each.value for each in at.latex)
        assert [each for each in told if each not in said] == []
        assert "not verified" not in said


def test_pre_norm_stands_beside_post_norm_and_an_embedding_beside_its_neighbours():
    at = run("pages/whole_model.py", model="random", part="source-embedding")
    told = words(at).replace("\\", "")
    assert "Post-norm · this model" in told or "Pre-norm · this model" in told
    drawn = named_charts(at)
    post, pre = (
        [
            note["text"].partition("<")[0]
            for note in drawn[f"anatomy-{norm}-norm"]["layout"]["annotations"]
        ]
        for norm in ("post", "pre")
    )
    assert post.count("+") == pre.count("+") == 5
    assert (post.count("LayerNorm"), pre.count("LayerNorm")) == (5, 7)
    near = told.partition("**Nearest neighbours** of ")[2].partition("Tokens that")[0]
    assert len(re.findall(r"“[^”]*” −?[01]\.\d\d", near)) == 8
