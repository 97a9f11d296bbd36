"""An encoder alone: its numbers beside PyTorch's own layers, what it predicts for masked words, and
what changes of its run do."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from closed_form import ENGLISH
from masked_words import CHANGES, OTHER, TEXT, encoder, vocabulary
from random_models import random_encoder
from refusals import refused
from torch import nn

from transformer import Capture, Translation, Translator, load_encoder
from transformer import interventions as do
from transformer.batches import hypotheses
from transformer.interventions import InterventionError
from transformer.model import EncoderModel
from transformer.reader import InputError
from transformer.storage.directory import load_checkpoint, save_checkpoint
from transformer.storage.eight_bits import packed
from transformer.text.tokenizer import BOS_ID, EOS_ID
from transformer.text.words import is_end, is_mask
from transformer.translator import retrace

KINDS = {
    "post-norm, learned, two segments": {"n_segments": 2},
    "pre-norm, sinusoidal, no segments": {
        "norm": "pre",
        "positions": "sinusoidal",
        "embedding_norm": False,
    },
    "rotary, plain output": {"positions": "rotary", "output_transform": False},
    "shaw, an output of its own": {"positions": "shaw", "tied_embeddings": False},
}


@pytest.fixture(scope="module", params=KINDS.values(), ids=list(KINDS))
def reader(request: Any) -> Translator:
    return encoder(**request.param)


def ids_of(run: Translation, reader: Translator) -> torch.Tensor:
    return torch.tensor([reader.ids_of(run)["encoder"]])


# --- numbers -------------------------------------------------------------------------------------


def layers_of(model: EncoderModel) -> nn.TransformerEncoder:
    """PyTorch's own layers with a model's weights."""
    config = model.config
    layer = nn.TransformerEncoderLayer(
        config.d_model,
        config.n_heads,
        config.d_ff,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=config.norm == "pre",
    )
    final = nn.LayerNorm(config.d_model) if config.norm == "pre" else None
    theirs = nn.TransformerEncoder(layer, config.n_layers, final, enable_nested_tensor=False)
    with torch.no_grad():
        for ours, copy in zip(model.encoder.layers, theirs.layers, strict=True):
            attention = ours.self_attention
            products = (attention.q_proj, attention.k_proj, attention.v_proj)
            copy.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in products]))
            copy.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in products]))
            pairs = (
                (copy.self_attn.out_proj, attention.out_proj),
                (copy.linear1, ours.feed_forward.inner),
                (copy.linear2, ours.feed_forward.outer),
                (copy.norm1, ours.self_attention_residual.norm),
                (copy.norm2, ours.feed_forward_residual.norm),
            )
            for there, here in pairs:
                there.load_state_dict(here.state_dict())
        if theirs.norm is not None:
            theirs.norm.load_state_dict(model.encoder.final_norm.state_dict())
    return theirs.eval()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_features_are_those_of_pytorch_s_layers(norm: str) -> None:
    model = random_encoder(norm=norm, n_segments=2, mask_id=9)
    ids = torch.tensor([[BOS_ID, 7, 9, EOS_ID, 11, 12, 13, EOS_ID], [BOS_ID, 5, EOS_ID] + [0] * 5])
    segments = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1], [0] * 3 + [1] * 5])
    with torch.inference_mode():
        table = model.encoder.positions.table
        entered = model.embedding(ids) + model.segments(segments) + table[: ids.shape[1]]
        entered = model.encoder.embedding_norm(entered)
        expected = layers_of(model)(entered, src_key_padding_mask=ids == 0)
        features = model.features(ids)
        assert torch.allclose(features[0], expected[0], atol=1e-5)
        assert torch.allclose(features[1, :3], expected[1, :3], atol=1e-5)
        alone = model.features(ids[1:, :3])
    assert torch.allclose(alone[0], features[1, :3], atol=1e-5)


def test_the_output_is_what_the_transform_and_the_table_make_of_the_features(
    reader: Translator,
) -> None:
    model = reader.model
    ids = ids_of(reader.fill(TEXT), reader)
    with torch.inference_mode():
        features = model.features(ids)
        x = features
        if model.output_transform is not None:
            transform = model.output_transform
            x = transform.norm(nn.functional.gelu(transform.linear(x)))
        table = model.embedding.weight if model.output is None else model.output.weight
        expected = x @ table.T + model.output_bias
        assert torch.allclose(model(ids), expected, atol=1e-5)


@pytest.mark.parametrize("stored", ["16 bits", "8 bits"])
def test_a_model_is_saved_and_opened(reader: Translator, stored: str, tmp_path: Path) -> None:
    state = reader.model.state_dict()
    options: Any = {"stored": packed} if stored == "8 bits" else {}
    save_checkpoint(tmp_path, reader.config, state, vocabulary(), **options)
    assert load_checkpoint(tmp_path).config == reader.config
    opened = load_encoder(tmp_path, "cpu")
    ours = opened.fill(TEXT)
    near = 0.02 if stored == "16 bits" else 1.0
    for position, fill in reader.fill(TEXT).fills.items():
        assert ours.fills[position].log_prob == pytest.approx(fill.log_prob, abs=near)
    assert ours.audit().passed


# --- what is predicted ---------------------------------------------------------------------------


def test_two_masks_are_filled_from_one_pass_and_any_word_from_a_pass_each(
    reader: Translator,
) -> None:
    run = reader.fill(TEXT)
    ids = ids_of(run, reader)
    masked = [place for place, piece in enumerate(run.source_tokens) if is_mask(piece)]
    assert list(run.fills) == masked
    assert len(masked) == 2
    with torch.inference_mode():
        log_probs = reader.model(ids)[0].log_softmax(-1)
    for place, fill in run.fills.items():
        assert fill.token_id == int(log_probs[place].argmax())
        assert fill.log_prob == pytest.approx(float(log_probs[place].max()), abs=1e-5)
        assert [best.token_id for best in fill.alternatives] == log_probs[place].topk(10)[
            1
        ].tolist()
    filled = ids[0].tolist()
    for place in masked:
        filled[place] = run.fills[place].token_id
    assert run.text == reader.text(filled)
    predictions = run.predict(range(len(run.source_tokens)))
    for place, prediction in predictions.items():
        alone = ids.clone()
        alone[0, place] = reader.config.mask_id
        with torch.inference_mode():
            expected = reader.model(alone)[0, place].log_softmax(-1)
        wanted = filled[place] if place in masked else int(ids[0, place])
        assert prediction.token_id == wanted
        assert prediction.log_prob == pytest.approx(float(expected[wanted]), abs=1e-5)


def test_many_positions_are_predicted_in_parts_as_one_by_one(monkeypatch: Any) -> None:
    from transformer import filling

    reader = encoder()
    run = reader.fill(" ".join(ENGLISH))
    places = range(1, len(run.source_tokens) - 1)
    together = run.predict(places)
    monkeypatch.setattr(filling, "MOST_POSITIONS", 2 * len(run.source_tokens) + 1)
    for place, prediction in run.predict(places).items():
        assert prediction.token_id == together[place].token_id
        assert prediction.log_prob == pytest.approx(together[place].log_prob, abs=1e-5)


def test_a_text_without_masks_has_no_fills(reader: Translator) -> None:
    run = reader.fill("one two")
    assert (run.text, run.fills, run.steps, run.target_tokens) == ("", {}, (), ())
    assert [place for place, piece in enumerate(run.source_tokens) if is_end(piece)] == [
        len(run.source_tokens) - 1
    ]


# --- changes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_every_change_does_what_its_equation_says(
    reader: Translator, change: do.Intervention
) -> None:
    capture = Capture(residual=True)
    run = reader.fill(TEXT, interventions=[change], capture=capture)
    report = run.audit()
    assert report.passed, [check for check in report.checks if not check.passed]
    if run.fills:
        plain = reader.fill(TEXT, capture=False).fills.values()
        assert [fill.log_prob for fill in run.fills.values()] != [fill.log_prob for fill in plain]
    again = retrace(reader, run, capture)
    assert again.fills == run.fills
    assert again.audit().passed


def test_a_patch_from_a_run_is_one_from_its_text(reader: Translator) -> None:
    other = reader.fill("eight nine <mask> ten five six")
    place = do.head_output("encoder", 1, 0)
    one, same = (
        reader.fill(TEXT, interventions=[do.patch(place, source, [2])]) for source in (other, OTHER)
    )
    assert one.fills == same.fills


def test_changes_hold_in_passes_that_predict_too(reader: Translator) -> None:
    change = do.ablate("encoder", 1, None)
    run = reader.fill(TEXT, interventions=[change])
    place = next(iter(run.fills))
    assert run.predict([place])[place].log_prob == pytest.approx(
        run.fills[place].log_prob, abs=1e-5
    )
    plain = reader.fill(TEXT).predict([1])[1]
    assert run.predict([1])[1].log_prob != plain.log_prob


def test_a_function_acts_in_every_pass_and_is_named(reader: Translator) -> None:
    seen = list[tuple[int, ...]]()

    def halved(value: torch.Tensor, at: Any = None) -> torch.Tensor:
        seen.append(tuple(value.shape))
        return value * 0.5

    run = reader.fill(TEXT, hooks={"encoder.0.self_attention.heads": halved})
    assert run.functions == ("encoder.0.self_attention.heads",)
    assert run.fills != reader.fill(TEXT).fills
    before = len(seen)
    run.predict([1, 2])
    assert len(seen) == before + 1
    assert seen[-1][0] == 2
    with refused(ValueError, "acts|functions|changed"):
        retrace(reader, run)


# --- what is refused, and segments ---------------------------------------------------------------


def test_what_an_encoder_cannot_do_is_refused() -> None:
    reader = encoder()
    with refused(TypeError, "writes no output"):
        reader.force("one", "two")
    with refused(TypeError, "no option beam_size"):
        reader.translate("one", beam_size=2)
    with refused(InputError, "writes no output"):
        reader.cut("one", "target")
    with refused(ValueError, "writes no output"):
        hypotheses(reader, ["one"])
    with refused(InputError, "shorten it to at most 64"):
        reader.fill("one " * 70)
    with refused(InputError, "empty"):
        reader.fill(" ")
    for change in (do.choose(0, 5), do.ablate("cross", 0, 0), do.mask("decoder", forbid="past")):
        with pytest.raises(InterventionError):
            reader.fill(TEXT, interventions=[change])


def test_a_model_without_an_output_reads(tmp_path: Path) -> None:
    reader = encoder(mask_id=None, output_bias=False, output_transform=False)
    run = reader.fill(TEXT)
    assert (run.text, run.fills, run.predict) == ("", {}, None)
    assert run.audit().passed
    with refused(ValueError, "no output for masked words"):
        reader.model(ids_of(run, reader))


@pytest.mark.parametrize("n_separators", [1, 2])
def test_an_end_divides_two_texts(n_separators: int) -> None:
    model = random_encoder(n_segments=2, n_separators=n_separators)
    ids = torch.tensor([[BOS_ID, 7, *[EOS_ID] * n_separators, 8, 9, EOS_ID]])
    expected = [0, 0, 0, *[1] * (n_separators - 1), 1, 1, 1]
    assert model.segments_of(ids)[0].tolist() == expected
    with torch.inference_mode():
        rows = model.looked_up(ids, "encoder") - model.embedding(ids)
    assert torch.allclose(rows[0], model.segments.weight[expected], atol=1e-6)


def test_a_forged_segment_is_told() -> None:
    reader = encoder(n_segments=2)
    run = reader.fill(TEXT, interventions=[do.edit_source(3, EOS_ID)])
    trace = run.trace
    tokens = trace.tensors["encoder.tokens"]
    tokens[5] += reader.model.segments.weight[0] - reader.model.segments.weight[1]
    assert not trace.auditor(trace, trace.places).passed


def test_visitors_with_one_model_get_their_own_runs() -> None:
    reader = encoder()
    texts = [f"{word} <mask> {other}" for word in ENGLISH for other in ENGLISH[:3]]
    expected = [reader.fill(text) for text in texts]
    together = threading.Barrier(4)

    def read(number: int) -> list[Translation]:
        together.wait()
        return [reader.fill(text) for text in texts[number:] + texts[:number]]

    with ThreadPoolExecutor(4) as pool:
        for number, runs in enumerate(pool.map(read, range(4))):
            wanted = expected[number:] + expected[:number]
            for run, other in zip(runs, wanted, strict=True):
                assert run.fills == other.fills
                weights = (each.weights("encoder", 1, 2) for each in (run, other))
                assert np.array_equal(*weights)
