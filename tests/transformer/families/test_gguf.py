"""GGUF files: the same model as its safetensors, quantised or not; and files that lie."""

import itertools
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from decoder_models import TURN, byte_level, write_decoder, write_gguf
from marian_models import trained
from refusals import refused

from transformer import Capture, Translator, load_language_model
from transformer.storage.files import CheckpointError
from transformer.text.words import is_special

TEXT = "The old house\n\n  and the\ttwo dogs, 12 naïve 😀 cats. "
MODELS = {
    "llama": "Llama, groups of three",
    "qwen2": "Qwen2",
    "qwen3": "Qwen3",
    "gpt2": "GPT-2",
}
Q8_0, Q4_0, F16 = (
    gguf.GGMLQuantizationType.Q8_0,
    gguf.GGMLQuantizationType.Q4_0,
    gguf.GGMLQuantizationType.F16,
)


def written(tmp_path: Path, architecture: str = "llama", **changes: Any) -> Path:
    """A GGUF file, beside the directory that it was made from."""
    directory = tmp_path / "directory"
    if not directory.exists():
        directory.mkdir()
        write_decoder(directory, MODELS[architecture])
    path = tmp_path / "model.gguf"
    write_gguf(path, directory, architecture, **changes)
    return path


def opened(path: Path) -> Translator:
    return load_language_model(path, "cpu")


@pytest.mark.parametrize("architecture", MODELS)
def test_a_file_holds_the_model_of_its_directory(architecture: str, tmp_path: Path) -> None:
    ours = opened(written(tmp_path, architecture))
    same = opened(tmp_path / "directory")
    ids = torch.tensor([byte_level().encode(TEXT).ids])
    with torch.inference_mode():
        assert torch.allclose(ours.model(ids), same.model(ids), atol=1e-6)
    run = ours.generate(TEXT, max_length=60, capture=Capture(residual=True))
    assert run.target_ids == same.generate(TEXT, max_length=60).target_ids
    assert run.audit().passed
    assert ours.notes == ()


def test_quantised_weights_are_multiplied_out_and_said(tmp_path: Path) -> None:
    directory = tmp_path / "directory"
    directory.mkdir()
    write_decoder(directory, "Llama, groups of three", hidden_size=96, intermediate_size=128)
    for kind in (Q8_0, Q4_0):
        path = tmp_path / f"{kind.name}.gguf"
        write_gguf(path, directory, "llama", kind=kind)
        ours = opened(path)
        assert ours.notes == (f"The weights of this model are multiplied out from {kind.name}.",)
        stored = gguf.GGUFReader(path)
        table = next(tensor for tensor in stored.tensors if tensor.name == "token_embd.weight")
        expected = gguf.dequantize(table.data, kind)
        assert np.array_equal(ours.model.embedding.weight.numpy(), expected)


def test_the_vocabulary_of_a_file_reads_and_writes_as_the_library_does(tmp_path: Path) -> None:
    ours = opened(written(tmp_path))
    for text in (TEXT, f"a {TURN} b", " x\n"):
        ids = byte_level().encode(text).ids
        assert list(ours.tokenizer.target.encode(text)) == ids
        if TURN not in text:
            assert ours.text(ids) == text
    assert is_special(ours.pieces([1])[0])


PRE = {
    "smollm": ("a123", ["a", "1", "2", "3"]),
    "llama-bpe": ("a1234 b", ["a", "1", "2", "3", "4", "▁", "b"]),
    "qwen2": ("e\u0301", ["é"]),
    "gpt-2": ("a 12", ["a", "▁", "1", "2"]),
}


@pytest.mark.parametrize(("name", "text", "pieces"), [(n, *row) for n, row in PRE.items()])
def test_a_rule_that_splits_texts_is_the_named_one(
    name: str, text: str, pieces: list[str], tmp_path: Path
) -> None:
    ours = opened(written(tmp_path, **{"tokenizer.ggml.pre": name}))
    named = "".join(ours.pieces(ours.tokenizer.target.encode(text)))
    assert named.replace("<0xC3><0xA9>", "é") == "".join(pieces)


def test_a_start_token_is_put_where_the_file_or_the_rule_says_so(tmp_path: Path) -> None:
    for changes, starts in (
        ({}, False),
        ({"tokenizer.ggml.add_bos_token": True}, True),
        ({"tokenizer.ggml.pre": "llama-bpe"}, True),
        ({"tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.add_bos_token": False}, False),
    ):
        assert opened(written(tmp_path, **changes)).config.starts_with_token is starts


def test_a_second_end_ends_a_text(tmp_path: Path) -> None:
    ours = opened(written(tmp_path, **{"tokenizer.ggml.eot_token_id": 1}))
    assert ours.rules.other_ends == (1,)


def test_pieces_with_scores_are_merged_as_sentencepiece_merges_them(tmp_path: Path) -> None:
    import sentencepiece

    lines = ["the old house and the two dogs saw the small cat"] * 50
    as_typed = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    model = trained(lines, model_type="bpe", vocab_size=320, byte_fallback=True, **as_typed)
    reader = sentencepiece.SentencePieceProcessor(model_proto=model)
    count = reader.get_piece_size()
    kinds = [
        2 if reader.IsUnknown(i) else 3 if reader.IsControl(i) else 6 if reader.IsByte(i) else 1
        for i in range(count)
    ]
    unused = 330 - count
    ours = opened(
        written(
            tmp_path,
            **{
                "tokenizer.ggml.model": "llama",
                "tokenizer.ggml.tokens": [
                    *map(reader.IdToPiece, range(count)),
                    *(f"<unused {i}>" for i in range(unused)),
                ],
                "tokenizer.ggml.scores": [*map(reader.GetScore, range(count)), *[-1e9] * unused],
                "tokenizer.ggml.token_type": kinds + [5] * unused,
                "tokenizer.ggml.bos_token_id": 1,
                "tokenizer.ggml.eos_token_id": 2,
            },
        )
    )
    assert ours.config.starts_with_token
    for text in ("the old house", "two zebras 12", "cat\nhouse"):
        assert list(ours.tokenizer.target.encode(text)) == reader.EncodeAsIds(text)
        assert ours.text(ours.ids(text)) == text
    assert ours.generate("", max_length=5).start_id == 1


def test_scaled_angles_of_llama_3_are_known_by_their_outcome(tmp_path: Path) -> None:
    from transformer.config import LanguageModelConfig
    from transformer.encodings import rotary_frequencies

    config = opened(written(tmp_path)).config
    assert isinstance(config, LanguageModelConfig)
    plain = rotary_frequencies(config.rotary, 8)
    from dataclasses import replace

    scaled = replace(config, rotary_scaling="llama3", rotary_factor=8.0)
    divisors = (plain / rotary_frequencies(scaled.rotary, 8)).float().numpy()
    assert opened(with_tensor(tmp_path, "rope_freqs.weight", divisors)).config == replace(
        config, rotary_scaling="llama3", rotary_factor=8.0
    )
    with refused(CheckpointError, "otherwise than Llama 3.1"):
        opened(with_tensor(tmp_path, "rope_freqs.weight", divisors * 3))


def with_tensor(tmp_path: Path, name: str, numbers: Any) -> Path:
    """The file of `written` with one tensor more."""
    reader = gguf.GGUFReader(tmp_path / "model.gguf")
    path = tmp_path / "more.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if not field.name.startswith(("GGUF.", "general.architecture")):
            kind = field.types[0]
            inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data)
    writer.add_tensor(name, numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an architecture": ({"general.architecture": "mamba"}, "architecture 'mamba'"),
    "a splitting rule": ({"tokenizer.ggml.pre": "falcon"}, "rule 'falcon'"),
    "a vocabulary": ({"tokenizer.ggml.model": "bert"}, "kind 'bert'"),
    "merges of nothing": ({"tokenizer.ggml.merges": ["x", "y z"]}, "merges of pieces"),
    "too few kinds": ({"tokenizer.ggml.token_type": [1, 1]}, "what kind each piece"),
    "more layers": ({"llama.block_count": 9}, "lacks the weight"),
    "fewer layers": ({"llama.block_count": 1}, "which no model of its architecture has"),
    "another width": ({"llama.embedding_length": 96}, "shape"),
    "experts": ({"llama.expert_count": 8}, "experts"),
    "angles": ({"llama.rope.scaling.type": "yarn"}, "yarn"),
    "no end": ({"tokenizer.ggml.eos_token_id": None}, "eos_token_id"),
    "a far end": ({"tokenizer.ggml.eos_token_id": 5_000}, "eos_id"),
}


@pytest.mark.parametrize(("changes", "words"), WRONG.values(), ids=list(WRONG))
def test_a_file_that_contradicts_itself_is_refused_in_a_sentence(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = written(tmp_path, **changes)
    if "general.architecture" in changes:
        path.write_bytes(
            path.read_bytes().replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0mamba", 1)
        )
    with refused(CheckpointError, words):
        opened(path)


def header(n_tensors: int = 0, n_values: int = 0, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_values)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def tensor(name: str, axes: list[int], kind: int, offset: int) -> bytes:
    sizes = struct.pack(f"<I{len(axes)}Q", len(axes), *axes)
    return text(name) + sizes + struct.pack("<IQ", kind, offset)


LYING: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "no GGUF": (b"PK\3\4" + bytes(60), "not a GGUF"),
    "an old version": (header(version=1), "version 1"),
    "cut in the header": (header(1, 1)[:20], "cut off"),
    "2^60 values": (header(0, 2**60), "values"),
    "2^60 tensors": (header(2**60), "tensors"),
    "a text of 2^60": (header(0, 1) + struct.pack("<Q", 2**60), "bytes in a text"),
    "a list of 2^60": (header(0, 1) + text("a") + struct.pack("<IIQ", 9, 4, 2**60), "entries"),
    "a long list that is cut": (
        header(0, 1) + text("a") + struct.pack("<IIQ", 9, 4, 10**6),
        "cut off",
    ),
    "a list in a list": (header(0, 1) + text("a") + struct.pack("<IIQ", 9, 9, 3), "type 9"),
    "an unknown type": (header(0, 1) + text("a") + struct.pack("<I", 77), "type 77"),
    "many axes": (header(1) + text("a") + struct.pack("<I", 9), "9 axes"),
    "an unknown type of weights": (header(1) + tensor("a", [32], 999, 0), "999"),
    "no rows": (header(1) + tensor("a", [0], 0, 0), "sizes"),
    "2^60 numbers": (header(1) + tensor("a", [2**30, 2**30], 0, 0), "sizes"),
    "part of a block": (header(1) + tensor("a", [33], 8, 0), "sizes"),
    "a tensor beyond the end": (header(1) + tensor("a", [32], 0, 0) + bytes(64), "not whole"),
    "an offset beyond the end": (header(1) + tensor("a", [8], 0, 2**50) + bytes(64), "not whole"),
    "an odd offset": (header(1) + tensor("a", [8], 0, 4) + bytes(128), "align"),
    "tensors that overlap": (
        header(2) + tensor("a", [32], 0, 0) + tensor("b", [32], 0, 64) + bytes(512),
        "lies over",
    ),
    "a name twice": (
        header(2) + tensor("a", [8], 0, 0) + tensor("a", [8], 0, 32) + bytes(512),
        "twice",
    ),
    "an odd alignment": (
        header(0, 1) + text("general.alignment") + struct.pack("<II", 4, 3) + bytes(64),
        "aligns",
    ),
}


@pytest.mark.parametrize(("content", "words"), LYING.values(), ids=list(LYING))
def test_a_file_that_lies_is_refused_before_memory_is_taken(
    content: bytes, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with refused(CheckpointError, words):
        opened(path)


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    content = written(tmp_path).read_bytes()
    path = tmp_path / "cut.gguf"
    for share in (0.01, 0.1, 0.3, 0.6, 0.9, 0.999):
        path.write_bytes(content[: int(len(content) * share)])
        with refused(CheckpointError, "cut off|lengths are wrong|whole"):
            opened(path)


def test_a_file_with_any_byte_changed_opens_or_is_refused_in_a_sentence(tmp_path: Path) -> None:
    content = bytearray(written(tmp_path).read_bytes())
    path = tmp_path / "changed.gguf"
    generator = np.random.default_rng(3)
    for place in itertools.chain(range(24), generator.integers(24, 9_000, 60)):
        kept = content[place]
        content[place] ^= 0x81
        path.write_bytes(content)
        content[place] = kept
        with suppress(CheckpointError):  # nothing else is raised
            opened(path)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")], ids=str)
def test_weights_that_are_no_numbers_are_refused(number: float, tmp_path: Path) -> None:
    path = written(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:-4] + struct.pack("<f", number))
    with refused(CheckpointError, "NaN or infinite"):
        opened(path)
