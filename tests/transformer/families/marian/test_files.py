"""Directories that look like Marian models and are damaged, foreign or hostile: one sentence each."""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
import weakref
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from marian_models import reference, write_marian
from parity import logits
from safetensors.torch import load_file, save_file

from transformer import load_translator
from transformer.families.weights import SINES
from transformer.storage.files import CheckpointError

SHARED = "model.shared.weight"


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    return {name: write_marian(folder / name, file=name) for name in ("safetensors", "bin", "old")}


@pytest.fixture
def directory(originals, tmp_path):
    """A good model in safetensors, to be spoilt."""
    return Path(shutil.copytree(originals["safetensors"], tmp_path / "model"))


@pytest.fixture
def pytorch(originals, tmp_path):
    """A good model in a PyTorch file, to be spoilt."""
    return Path(shutil.copytree(originals["bin"], tmp_path / "model"))


def change(directory, name="config.json", **entries):
    path = directory / name
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def rewrite(directory, **changes):
    """Changes tensors of the safetensors file; None takes one out."""
    state = load_file(directory / "model.safetensors") | changes
    save_file({name: t for name, t in state.items() if t is not None}, directory / "model.safetensors")


def refused(directory, message):
    with pytest.raises(CheckpointError, match=message) as caught:
        load_translator(directory)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 600


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"encoder_layers": 10**9}, "n_encoder_layers is 1000000000"),
        ({"decoder_layers": -1}, "n_decoder_layers is -1"),
        ({"encoder_layers": 2.5}, "n_encoder_layers is 2.5"),
        ({"encoder_layers": True}, "n_encoder_layers is True"),
        ({"encoder_layers": None}, "n_encoder_layers is None"),
        ({"encoder_layers": "6" * 10_000}, "n_encoder_layers"),
        ({"d_model": 10**12}, "d_model is"),
        ({"d_model": 33}, "not a multiple of n_heads"),
        ({"vocab_size": 10**9}, "vocab_size is 1000000000"),
        ({"vocab_size": 10**6}, "of about 32,"),
        ({"max_position_embeddings": 10**6}, "of about 32,"),
        ({"max_position_embeddings": -5}, "max_positions is -5"),
        ({"d_model": 16384, "encoder_ffn_dim": 65536, "decoder_ffn_dim": 65536}, "at most 2,000,000,000"),
        ({"decoder_ffn_dim": 50}, r"decoder\.layers\.0\.fc1\.(weight|bias) has the shape"),
        ({"decoder_attention_heads": 2}, "decoder_attention_heads = 2"),
        ({"activation_function": "gelu_new"}, "activation 'gelu_new'"),
        ({"activation_function": ["relu"]}, "activation"),
        ({"normalize_before": True}, "normalize_before = True"),
        ({"add_final_layer_norm": True}, "add_final_layer_norm = True"),
        ({"pad_token_id": 10**6, "decoder_start_token_id": 10**6}, "pad_id is 1000000"),
        ({"eos_token_id": [0, 1]}, "eos_id is"),
        ({"eos_token_id": 3}, "gives </s> the id 3, but the vocabulary has 0"),
        ({"share_encoder_decoder_embeddings": "yes"}, "shared_embeddings is 'yes'"),
        ({"scale_embedding": 3}, "scaled_embeddings is 3"),
        ({"dropout": "much"}, "dropout is 'much'"),
        ({"encoder_layers": 3}, "lack 16 that config.json asks for"),
        ({"encoder_layers": 1}, "include 16 that config.json does not describe"),
        ({"encoder_ffn_dim": 44, "decoder_ffn_dim": 44}, r"fc1\.(weight|bias) has the shape"),
        ({"vocab_size": 200}, "has the shape"),
        ({"vocab_size": 60, "pad_token_id": 5, "decoder_start_token_id": 5}, "not from 0 to 59"),
    ],
    ids=range(30),
)
def test_a_hostile_or_foreign_config_is_refused_before_memory_is_taken(directory, entries, message):
    change(directory, **entries)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(directory, message)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_entries_of_older_configs_that_change_nothing_are_passed_over(directory):
    """OPUS-MT's first models say extra_pos_embeddings = pad_token_id + 1, which no sinusoid uses."""
    expected = load_translator(directory).translate("the cat sat").log_probs
    change(
        directory, extra_pos_embeddings=95, add_bias_logits=False, classif_dropout=0.0, num_hidden_layers=6
    )
    assert load_translator(directory).translate("the cat sat").log_probs == expected


@pytest.mark.parametrize("content", ["", "{", "[1]", "null", '{"model_type": "marian"', "[" * 200_000])
def test_a_config_that_is_no_json_object_is_refused(directory, content):
    (directory / "config.json").write_text(content)
    refused(directory, r"config\.json (is not valid JSON|is not a JSON object)")


def test_a_model_of_another_library_is_refused(directory):
    change(directory, model_type="pegasus")
    refused(directory, "pegasus model of another library")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"num_beams": 10**9}, "num_beams is 1000000000"),
        ({"num_beams": "4"}, "num_beams is '4'"),
        ({"max_length": -3}, "max_length is -3"),
        ({"length_penalty": 1e300}, "length_penalty is"),
        ({"early_stopping": "sometimes"}, "early_stopping is"),
        ({"early_stopping": 1}, "early_stopping is 1"),
        ({"bad_words_ids": 5}, "bad_words_ids"),
        ({"bad_words_ids": [[]]}, "bad_words_ids"),
        ({"bad_words_ids": [[10**9]]}, "bad_words_ids"),
        ({"bad_words_ids": [["a"]]}, "bad_words_ids"),
        ({"bad_words_ids": [[1]] * 20_000}, "at most 10,000"),
        ({"bad_words_ids": [[n] for n in range(95)]}, "forbids every piece"),
        ({"forced_eos_token_id": 10**9}, "forced_eos_token_id"),
    ],
    ids=range(13),
)
def test_impossible_rules_are_refused_by_name(directory, entries, message):
    change(directory, "generation_config.json", **entries)
    refused(directory, message)


def test_rules_that_are_not_applied_are_said_with_every_translation(directory):
    change(directory, "generation_config.json", repetition_penalty=1.5, do_sample=False, eos_token_id=[0])
    change(directory, "generation_config.json", decoder_start_token_id=7)
    translation = load_translator(directory).translate("the cat", capture=False)
    assert any(
        "decoder_start_token_id = 7, which this package does not apply" in note for note in translation.notes
    )
    assert not any("eos_token_id" in note for note in translation.notes)
    assert any(
        "repetition_penalty = 1.5, which this package does not apply" in note for note in translation.notes
    )
    assert not any("do_sample" in note for note in translation.notes)


def test_the_end_may_be_suppressed_but_is_never_a_bad_word(directory):
    change(directory, "generation_config.json", bad_words_ids=[[0], [7]], suppress_tokens=[0])
    translator = load_translator(directory)
    assert translator.rules.forbidden == ((7,), (0,), (translator.config.pad_id,))


def test_an_older_config_holds_the_rules_itself(directory):
    (directory / "generation_config.json").unlink()
    change(directory, num_beams=6, max_length=12, bad_words_ids=[[7]], forced_eos_token_id=0)
    rules, pad = load_translator(directory).rules, reference(directory).config.pad_token_id
    found = rules.beam_size, rules.max_length, rules.forbidden, rules.forced_end
    assert found == (6, 11, ((7,), (pad,)), 0)


def test_entries_that_a_config_leaves_out_are_the_reference_s_defaults(directory):
    values = json.loads((directory / "config.json").read_text())
    for name in ("scale_embedding", "activation_function"):
        values.pop(name)
    (directory / "config.json").write_text(json.dumps(values))
    config = load_translator(directory).config
    assert (config.scaled_embeddings, config.activation) == (False, "gelu")


@pytest.mark.parametrize(
    "name", ["../x.bin", "/etc/passwd", "a/b.safetensors", "..", "x.pkl", "~/x.bin", "a\\b.bin", ""]
)
@pytest.mark.parametrize("index", ["model.safetensors.index.json", "pytorch_model.bin.index.json"])
def test_an_index_cannot_name_a_file_outside_the_directory(directory, index, name):
    (directory / "model.safetensors").unlink()
    (directory / index).write_text(json.dumps({"weight_map": {SHARED: name}}))
    refused(directory, "not a weight file beside it")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "does not name any weight files"),
        ({"weight_map": []}, "does not name any weight files"),
        ({"weight_map": {SHARED: "a.bin"}}, r"lacks a\.bin"),
        ({"weight_map": {str(n): f"{n}.bin" for n in range(300)}}, "names 300 files"),
    ],
    ids=range(4),
)
def test_an_index_of_nothing_is_refused(directory, content, message):
    (directory / "model.safetensors").unlink()
    (directory / "pytorch_model.bin.index.json").write_text(json.dumps(content))
    refused(directory, message)


def test_a_directory_without_weights_is_refused(directory):
    (directory / "model.safetensors").unlink()
    refused(directory, "neither model.safetensors nor pytorch_model.bin")


@pytest.mark.parametrize("size", [0, 7, 100, 5000, -100])
@pytest.mark.parametrize("file", ["safetensors", "bin", "old"])
def test_a_cut_off_weight_file_is_refused(originals, tmp_path, file, size):
    directory = Path(shutil.copytree(originals[file], tmp_path / "model"))
    (path,) = [*directory.glob("*.safetensors"), *directory.glob("*.bin")]
    os.truncate(path, size if size >= 0 else path.stat().st_size + size)
    refused(directory, "damaged")


def test_a_weight_that_is_missing_or_too_many_is_refused_by_name(directory):
    name = "model.encoder.layers.0.fc1.bias"
    rewrite(directory, **{name: None})
    refused(directory, f"lack 1 that .* the first is {name}")
    rewrite(directory, **{name: torch.zeros(48), "model.encoder.extra": torch.zeros(2)})
    refused(directory, "does not describe, such as 'model.encoder.extra'")
    rewrite(directory, **{"model.encoder.extra": None, "a\nb" + "c" * 9_000: torch.zeros(2)})
    refused(directory, r"such as 'a\\nbc")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_not_numbers_are_refused(directory, value):
    bad = torch.zeros(48)
    bad[7] = value
    rewrite(directory, **{"model.encoder.layers.0.fc1.bias": bad})
    refused(directory, "NaN or infinite")


def test_whole_numbers_are_no_weights(directory):
    rewrite(directory, **{"model.encoder.layers.0.fc1.bias": torch.zeros(48, dtype=torch.int32)})
    refused(directory, "as I32")


def test_an_old_pytorch_file_is_read_once_and_let_go_as_it_is_copied(originals, monkeypatch):
    calls, kept, load = [], [], torch.load

    def counted(*arguments, **options):
        calls.append(options["mmap"])
        state = load(*arguments, **options)
        kept.extend(weakref.ref(tensor) for tensor in state.values())
        return state

    monkeypatch.setattr(torch, "load", counted)
    load_translator(originals["old"])
    assert calls == [False]
    assert kept
    assert not any(each() for each in kept)
    load_translator(originals["bin"])
    assert calls[1:]
    assert all(calls[1:]), "a zip file is mapped"


@pytest.mark.parametrize("side", SINES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_stored_positions_are_taken_over_exactly_and_others_refused(directory, side, dtype):
    table = reference(directory).state_dict()[side].to(dtype)
    rewrite(directory, **{side: table})
    translator = load_translator(directory)
    stack = getattr(translator.model, SINES[side])
    assert torch.equal(stack.positions.added(64).cpu(), table.float())
    rewrite(directory, **{side: table + 0.5})
    refused(directory, "does not hold Marian's sinusoids")


@pytest.mark.parametrize("name", ["lm_head.weight", "model.decoder.embed_tokens.weight", SHARED])
def test_a_tied_table_may_have_any_of_its_names(directory, name):
    expected = load_translator(directory).translate("the cat sat").log_probs
    table = load_file(directory / "model.safetensors")[SHARED]
    rewrite(directory, **{SHARED: None, name: table})
    translator = load_translator(directory)
    assert translator.config.tied_embeddings
    assert translator.translate("the cat sat").log_probs == expected


def test_an_output_that_differs_from_a_tied_table_is_kept_as_the_reference_keeps_it(directory):
    table = load_file(directory / "model.safetensors")[SHARED]
    rewrite(directory, **{"lm_head.weight": table.flip(0).contiguous()})
    translator = load_translator(directory)
    assert not translator.config.tied_embeddings
    ids, read = torch.tensor([[5, 6, 0]]), torch.tensor([[translator.config.bos_id, 4]])
    with torch.no_grad():
        expected = reference(directory)(input_ids=ids, decoder_input_ids=read).logits
    torch.testing.assert_close(logits(translator, ids, read), expected, atol=1e-4, rtol=0)


class Payload:
    """Runs code if a pickle is trusted."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("new", [True, False])
def test_a_pickle_that_asks_for_more_than_numbers_is_refused_and_not_run(pytorch, tmp_path, new):
    weights = {SHARED: torch.zeros(2), "x": Payload(tmp_path / "owned")}
    torch.save(weights, pytorch / "pytorch_model.bin", _use_new_zipfile_serialization=new)
    refused(pytorch, "holds more than numbers, which is refused")
    (pytorch / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(tmp_path / "owned")))
    refused(pytorch, "holds more than numbers, which is refused")
    assert not (tmp_path / "owned").exists()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_tensor_without_numbers_or_without_one_shape_is_refused(pytorch):
    state = torch.load(pytorch / "pytorch_model.bin", weights_only=True)
    for make in (
        lambda: torch.empty(48, 32, device="meta"),
        lambda: torch.nested.nested_tensor([torch.zeros(3), torch.zeros(4)]),
    ):
        state["model.encoder.layers.0.fc1.weight"] = make()
        torch.save(state, pytorch / "pytorch_model.bin")
        refused(pytorch, "has no numbers or no single shape")


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "generation_config.json"])
def test_what_is_no_file_is_not_read(directory, name):
    (directory / name).unlink()
    (directory / name).symlink_to("/dev/zero")
    refused(directory, f"{name} is not a file|no model directory|has no {name}|holds no model")


@pytest.mark.parametrize(
    "content", [[1, 2], torch.zeros(3), {"a": 1}, {1: torch.zeros(2)}, OrderedDict(a=None)], ids=range(5)
)
def test_a_pytorch_file_of_something_else_is_refused(pytorch, content):
    torch.save(content, pytorch / "pytorch_model.bin")
    refused(pytorch, "something other than named tensors")


def test_a_compressed_zip_is_refused_before_it_is_unpacked(pytorch):
    path = pytorch / "pytorch_model.bin"
    with zipfile.ZipFile(path) as archive:
        names = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in names:
            archive.writestr(name, content)
        archive.writestr("archive/data/bomb", bytes(50 * 2**20))
    refused(pytorch, "compressed zip file")


def test_a_tensor_that_repeats_few_numbers_is_refused(pytorch):
    state = torch.load(pytorch / "pytorch_model.bin", weights_only=True)
    state["model.encoder.layers.0.fc1.weight"] = torch.zeros(1).expand(48, 32)
    torch.save(state, pytorch / "pytorch_model.bin")
    refused(pytorch, "repeats its stored numbers")


def test_a_weight_in_two_shards_is_refused(pytorch):
    path = pytorch / "pytorch_model.bin"
    shutil.copy(path, pytorch / "a.bin")
    path.rename(pytorch / "b.bin")
    places = {SHARED: "a.bin", "lm_head.weight": "b.bin"}
    (pytorch / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    refused(pytorch, r"but a\.bin holds it too")


def test_a_model_that_needs_a_language_asks_for_it_and_refuses_an_unknown_one(tmp_path):
    translator = load_translator(write_marian(tmp_path, languages=True))
    for text in ("the cat sat", ">>xyz<< the cat sat", "the >>fra<< cat"):
        with pytest.raises(ValueError, match=r"3 languages; begin the text .* >>fra<< or >>spa<<"):
            translator.translate(text)
    with pytest.raises(ValueError, match="empty"):
        translator.translate(">>fra<<")
    assert translator.translate(">>spa<< the cat sat").source_tokens[0] == ">>spa<<"


def test_a_text_longer_than_the_positions_is_refused(directory):
    translator = load_translator(directory)
    with pytest.raises(ValueError, match="shorten it to at most 64"):
        translator.translate("cat " * 70)
    with pytest.raises(ValueError, match="max_length"):
        translator.translate("cat", max_length=65)


def test_what_a_visitor_types_as_padding_is_read_as_the_reference_reads_it(directory):
    translator = load_translator(directory)
    text = "the <pad> cat </s> sat"
    read = torch.tensor([[translator.config.bos_id, 4, 5]])
    ids = torch.tensor([[*translator.ids(text), 0]])
    with torch.no_grad():
        expected = reference(directory)(
            input_ids=ids, attention_mask=torch.ones_like(ids), decoder_input_ids=read
        ).logits
    torch.testing.assert_close(logits(translator, ids, read), expected, atol=1e-4, rtol=0)


def test_names_without_a_prefix_and_an_end_in_a_list_are_read(directory):
    """As a model is saved without its output projection, and as newer files name their end."""
    expected = load_translator(directory).translate("the cat sat").log_probs
    path = directory / "model.safetensors"
    stored = {name.removeprefix("model."): tensor for name, tensor in load_file(path).items()}
    save_file(stored, path, {"format": "pt"})
    change(directory, eos_token_id=[0])
    assert load_translator(directory).translate("the cat sat").log_probs == expected
