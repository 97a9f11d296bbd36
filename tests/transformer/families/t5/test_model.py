"""T5 models against transformers' own, on checkpoints made here."""

from __future__ import annotations

import json

import pytest
import torch
from parity import largest, logits
from safetensors.torch import load_file, save_file
from t5_models import PREFIX, reference, reference_tokenizer, write_t5

from explorer.lenses.inside.inside import look_inside
from explorer.lenses.inside.parts import feed_forward_part, final_norm_part, logit_lens, norm_part
from explorer.lenses.measures.attribution import saliency
from explorer.lenses.measures.stream import UnmeasuredError
from transformer import AttentionKind, Capture, load_translator
from transformer.config import Sublayer
from transformer.encodings import t5_buckets
from transformer.storage.files import CheckpointError
from transformer.translator import InputError

TEXT = f"{PREFIX}the cat sleeps in the old house while two dogs ran over the hills ."
TARGET = "die Katze schläft und das Haus ist klein"


def test_the_buckets_of_distances_are_the_reference_s():
    from transformers.models.t5.modeling_t5 import T5Attention

    distances = torch.arange(-400, 401)
    for causal in (False, True):
        expected = T5Attention._relative_position_bucket(distances, bidirectional=not causal)
        assert torch.equal(t5_buckets(distances.clamp(-128, 128), causal=causal), expected)


@pytest.fixture(scope="module", params=[{}, {"feed_forward": "gated-gelu", "tied": False, "seed": 1}])
def run(request, tmp_path_factory):
    translator = load_translator(write_t5(tmp_path_factory.mktemp("run"), **request.param))
    return translator, translator.force(TEXT, TARGET, capture=Capture(residual=True))


def test_inside_a_head_nothing_is_divided_and_everything_is_proved(run):
    translator, forced = run
    for kind in AttentionKind:
        inside = look_inside(translator.model, forced, (kind, 0, 1), 2)
        assert inside.audit.passed, inside.audit
        assert inside.divisor == 1.0
        assert (inside.scaled == inside.products).all()
        assert (inside.bias is None) == (kind is AttentionKind.CROSS)
        assert inside.w_q.weight.shape == (24, 6)
        assert not inside.w_o.bias.any()


def test_the_parts_of_a_layer_are_proved(run):
    translator, forced = run
    sublayer = Sublayer("decoder", 1, "feed_forward")
    part = norm_part(translator.model, forced, sublayer, 2)
    assert part.mean is None
    assert part.bias is None
    assert (part.normalised**2).mean() == pytest.approx(1.0, abs=1e-4)
    network = feed_forward_part(translator.model, forced, "decoder", 1, 2)
    assert (network.gates is not None) == translator.config.gated
    last = final_norm_part(translator.model, forced, "encoder", 2)
    assert last is not None
    for each in (*part.checks, *network.checks, *last.checks):
        assert each.passed, each
    _, checks = logit_lens(translator.model, forced, 3)
    assert all(each.passed for each in checks)


def test_an_untied_t5_without_its_output_table_is_refused(tmp_path):
    directory = write_t5(tmp_path, tied=False)
    path = directory / "model.safetensors"
    stored = load_file(path)
    del stored["lm_head.weight"]
    save_file(stored, path, {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"lack lm_head\.weight"):
        load_translator(directory)


def test_integrated_gradients_through_rms_norm_are_refused_in_one_sentence(tmp_path):
    translator = load_translator(write_t5(tmp_path))
    run = translator.translate("the cat sleeps", beam_size=1, capture=Capture(residual=True))
    with pytest.raises(UnmeasuredError, match="the logits jump where no points can follow"):
        saliency(translator, run, 0, run.steps[0].token_id)
    assert not saliency(translator, run, 0, run.steps[0].token_id, integrated=False).audit.checks


def test_what_transformers_5_says_of_ties_is_understood(tmp_path):
    """It saves an untied T5 as a tied one, with a second entry that says whether the output is scaled."""
    from transformers import T5Config

    values = T5Config(tie_word_embeddings=False).to_dict()
    assert values["tie_word_embeddings"] is True
    assert values["scale_decoder_outputs"] is False
    directory = write_t5(tmp_path, config={"tie_word_embeddings": True, "scale_decoder_outputs": False})
    translator = load_translator(directory)
    assert not translator.config.scaled_output
    read = torch.tensor([[0, 5, 6]])
    with torch.no_grad():
        expected = reference(directory)(input_ids=read, decoder_input_ids=read).logits
    assert largest(logits(translator, read, read), expected) <= 1e-4


def test_an_end_in_a_list_and_which_rules_are_on(tmp_path):
    rules = {"max_length": 12, "no_repeat_ngram_size": 3, "min_length": 5, "repetition_penalty": 1.5}
    directory = write_t5(tmp_path, generation=rules, config={"eos_token_id": [1]})
    translator = load_translator(directory)
    assert translator.config.eos_id == 1
    assert translator.notes == (
        "This model's search keeps rules of its own: no end before 4 tokens and no 3 tokens in a row twice.",
        "This model's files set repetition_penalty = 1.5, which this package does not apply.",
    )
    assert json.loads((directory / "config.json").read_text())["eos_token_id"] == [1]


def test_a_madlad_translates_into_the_language_with_which_a_text_begins(tmp_path):
    translator = load_translator(write_t5(tmp_path, symbols=("<2de>", "<2pt>", "<2xx_Latn>")))
    assert translator.config.task == "translate"
    assert translator.config.language_pieces == ("<2de>", "<2pt>", "<2xx_Latn>")
    assert translator.config.prompt_texts == ()
    run = translator.translate("<2de> the house")
    assert run.source_tokens[:2] == ("<2de>", "▁the")
    assert [*translator.ids("<2de> the house"), 1] == reference_tokenizer(tmp_path)(
        "<2de> the house"
    ).input_ids
    with pytest.raises(InputError, match="translates into 3 languages; begin the text with the one you want"):
        translator.translate("the house")
