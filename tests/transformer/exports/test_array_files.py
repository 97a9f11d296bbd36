"""Files of weights: four formats, what is kept and what is passed over, damage, and bounds."""

import io
import json
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch
from safetensors.numpy import save as save_numbers
from safetensors.torch import save as save_tensors

from transformer.exports import array_files
from transformer.exports.array_files import FOREIGN, NOTHING, is_trace, load_arrays, save_arrays
from transformer.exports.array_numbers import WeightsError
from transformer.exports.array_run import run_of
from transformer.exports.record import TraceFileError
from transformer.text.words import is_special
from transformer.translator import Translator

WORDS = ["[CLS]", "old", "house", "##s"]
SOURCE = ["▁the", "▁old", "▁house"]
TARGET = ["<pad>", "▁das", "▁alte", "▁Haus"]


def shares(*shape: int) -> np.ndarray:
    """Weights whose rows sum to 1."""
    weights = np.random.default_rng(len(shape)).random(shape).astype(np.float32)
    return weights / weights.sum(-1, keepdims=True)


FULL = shares(2, 3, 4, 4)
KINDS = {
    "encoder_attentions": shares(2, 3, 3, 3),
    "decoder_attentions": np.tril(np.full((1, 2, 4, 4), 0.5, np.float32)),
    "cross_attentions": shares(1, 2, 4, 3),
}


def npz(arrays: Mapping[str, object]) -> bytes:
    """An NPZ file."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy(array: np.ndarray) -> bytes:
    """An npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def in_json(values: object) -> bytes:
    """A JSON file."""
    return json.dumps(values).encode()


FILES: dict[str, tuple[bytes, np.ndarray, list[str]]] = {
    "npz": (npz({"weights": FULL, "tokens": WORDS}), FULL, WORDS),
    "npz in half precision": (
        npz({"weights": FULL.astype(np.float16), "tokens": WORDS}),
        FULL.astype(np.float16).astype(np.float32),
        WORDS,
    ),
    "npz of one map": (
        npz(
            {
                "kind": "encoder",
                "scores": FULL[0, 0],
                "mask": FULL[0, 0] > 0,
                "weights": FULL[0, 0],
                "query_tokens": WORDS,
                "predicted_tokens": np.array((), str),
                "key_tokens": WORDS,
            }
        ),
        FULL[:1, :1],
        WORDS,
    ),
    "npy": (npy(FULL), FULL, ["▁1", "▁2", "▁3", "▁4"]),
    "npy with columns first": (npy(np.asfortranarray(FULL)), FULL, ["▁1", "▁2", "▁3", "▁4"]),
    "json": (in_json({"weights": FULL.tolist(), "tokens": WORDS}), FULL, WORDS),
    "json of a list": (in_json(FULL[0].tolist()), FULL[:1], ["▁1", "▁2", "▁3", "▁4"]),
    "json with a byte order mark": (
        b"\xef\xbb\xbf" + in_json({"weights": FULL.tolist(), "tokens": WORDS}),
        FULL,
        WORDS,
    ),
    "json with ids": (
        in_json({"weights": FULL.tolist(), "tokens": [1, 2, 3, 4]}),
        FULL,
        ["▁1", "▁2", "▁3", "▁4"],
    ),
    "npz with ids": (npz({"weights": FULL, "tokens": [1, 2, 3, 4]}), FULL, list("1234")),
    "npz with bytes": (npz({"weights": FULL, "tokens": np.array(WORDS, "S")}), FULL, WORDS),
    "npz of whole numbers": (
        npz({"weights": np.ones((1, 2, 4, 4), int), "mask": np.ones((4, 4), bool)}),
        np.ones((1, 2, 4, 4), np.float32),
        list("1234"),
    ),
    "json with half a character": (
        in_json({"weights": FULL.tolist(), "tokens": ["\ud800", *"abc"]}),
        FULL,
        ["\ufffd", *"abc"],
    ),
    "safetensors": (
        save_numbers({"weights": FULL}, {"tokens": json.dumps(WORDS)}),
        FULL,
        WORDS,
    ),
    "safetensors in bfloat16": (
        save_tensors({"weights": torch.from_numpy(FULL).bfloat16()}),
        torch.from_numpy(FULL).bfloat16().float().numpy(),
        ["▁1", "▁2", "▁3", "▁4"],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_every_format_opens(name: str):
    content, weights, words = FILES[name]
    assert not is_trace(content)
    run = load_arrays(content)
    assert run.config.sizes == {"encoder": weights.shape[:2]}
    for layer, head in np.ndindex(weights.shape[:2]):
        assert np.array_equal(run.weights("encoder", layer, head), weights[layer, head])
    assert run.source_tokens == run_of(weights, words).source_tokens


@pytest.mark.parametrize(
    "content",
    [
        npz({**KINDS, "encoder_tokens": SOURCE, "decoder_tokens": TARGET, "name": "T5"}),
        in_json(
            {name: weights.tolist() for name, weights in KINDS.items()}
            | {"source_tokens": SOURCE, "target_tokens": TARGET, "name": "T5"}
        ),
        save_numbers(
            KINDS,
            {
                "encoder_tokens": json.dumps(SOURCE),
                "decoder_tokens": json.dumps(TARGET),
                "name": "T5",
            },
        ),
    ],
    ids=["npz", "json", "safetensors"],
)
def test_three_kinds_of_a_file_are_the_three_of_one_run_and_are_written_as_they_were(
    content: bytes,
):
    run = load_arrays(content)
    for _ in range(2):
        assert (run.model, run.source_tokens, run.target_tokens) == (
            "T5",
            tuple(SOURCE),
            tuple(TARGET),
        )
        assert run.config.sizes == {"encoder": (2, 3), "decoder": (1, 2), "cross": (1, 2)}
        for kind in run.config.sites:
            for layer, head in np.ndindex(run.config.sizes[kind]):
                expected = KINDS[f"{kind}_attentions"][layer, head]
                assert np.array_equal(run.weights(kind, layer, head), expected)
        file = io.BytesIO()
        save_arrays(run, file)
        run = load_arrays(file.getvalue())


def test_words_of_one_s_own_are_kept_in_a_file():
    file = io.BytesIO()
    save_arrays(run_of(FULL, WORDS, kinds="patches"), file)
    run = load_arrays(file.getvalue())
    assert run.config.sites["encoder"].title == "patches"
    assert run.notes == ()


def safe(entries: Mapping[str, tuple[int, int]], n_bytes: int) -> bytes:
    """A safetensors file of BF16 in given bytes."""
    header = in_json(
        {
            name: {
                "dtype": "BF16",
                "shape": [1, (last - first) // 2],
                "data_offsets": [first, last],
            }
            for name, (first, last) in entries.items()
        }
    )
    return len(header).to_bytes(8, "little") + header + bytes(n_bytes)


GOOD = npz({"weights": FULL, "tokens": WORDS})
SAFE = save_numbers({"weights": FULL})
REFUSED: dict[str, tuple[Callable[[], bytes], type[ValueError], str]] = {
    "nothing": (lambda: b"", TraceFileError, FOREIGN),
    "text": (lambda: b"once upon a time", TraceFileError, FOREIGN),
    "half a zip": (lambda: GOOD[: len(GOOD) // 2], TraceFileError, FOREIGN),
    "half an npy": (
        lambda: npy(FULL)[:-8],
        TraceFileError,
        "The file is cut off: an array is shorter than it says.",
    ),
    "half a safetensors": (
        lambda: SAFE[:-8],
        TraceFileError,
        "The file is cut off: an array is shorter than it says.",
    ),
    "a header that is longer than the file": (
        lambda: (2**40).to_bytes(8, "little") + SAFE[8:],
        TraceFileError,
        FOREIGN,
    ),
    "half a json": (lambda: b'{"weights": [[1', TraceFileError, FOREIGN),
    "deep json": (lambda: b"[" * 100_000, TraceFileError, FOREIGN),
    "objects": (
        lambda: npz({"weights": np.array([{}, None])}),
        TraceFileError,
        "The file holds an array of the type object, not of numbers.",
    ),
    "no weights": (lambda: npz({"tokens": WORDS}), TraceFileError, NOTHING),
    "other json": (lambda: in_json({"a": 1}), TraceFileError, NOTHING),
    "tokens": (
        lambda: npz({"weights": FULL, "tokens": WORDS[:3]}),
        WeightsError,
        "The queries axis of “weights” has 4, but 3 tokens were given.",
    ),
    "a token that is a list": (
        lambda: in_json({"weights": [[1, 0], [0, 1]], "encoder_tokens": [["a"], ["b"]]}),
        WeightsError,
        "The token ['a'] is no text.",
    ),
    "a token that is a mapping": (
        lambda: in_json({"weights": [[1, 0], [0, 1]], "encoder_tokens": [{}, {}]}),
        WeightsError,
        "The token {} is no text.",
    ),
    "tokens that are one text": (
        lambda: in_json({"weights": [[1, 0], [0, 1]], "tokens": "ab"}),
        WeightsError,
        "The tokens are one text; give a list with an entry for each token.",
    ),
    "tokens that are a number": (
        lambda: save_numbers({"weights": FULL}, {"tokens": "5"}),
        WeightsError,
        "The tokens 5 are no list with an entry for each token.",
    ),
    "special tokens that are one text": (
        lambda: in_json({"weights": [[1, 0], [0, 1]], "tokens": ["a", "b"], "special": "01"}),
        WeightsError,
        "The special tokens are one text; give a list with an entry for each token.",
    ),
    "special tokens as numbers of a safetensors file": (
        lambda: save_numbers({"weights": FULL, "special": FULL[0, 0, 0]}, {}),
        WeightsError,
        "In a safetensors file, “special” stands in the metadata, as a list in JSON.",
    ),
    "special tokens that are said in two ways": (
        lambda: in_json(
            {
                "weights": [[1, 0], [0, 1]],
                "encoder_tokens": ["a", "b"],
                "decoder_tokens": ["a", "b"],
                "encoder_special": [0, 1],
                "decoder_special": [1, 0],
            }
        ),
        WeightsError,
        "The file says in two ways which tokens are special.",
    ),
    "tokens that are no json": (
        lambda: save_numbers({"weights": FULL}, {"tokens": "old house"}),
        WeightsError,
        "The tokens in the metadata of the file are no list in JSON.",
    ),
    "whole numbers of any meaning": (
        lambda: npz({"token_ids": np.ones((1, 4), int), "mask": np.ones((4, 4), bool)}),
        TraceFileError,
        "“token_ids” holds whole numbers, which may be anything; if they are weights, call them "
        "weights.",
    ),
    "one side by two names": (
        lambda: npz({"weights": FULL, "encoder_tokens": WORDS, "source_tokens": WORDS}),
        TraceFileError,
        "The file has “encoder_tokens” and “source_tokens”, which say the same: keep one.",
    ),
    "both sides and one": (
        lambda: in_json({"weights": FULL.tolist(), "tokens": WORDS, "target_tokens": WORDS}),
        TraceFileError,
        "The file has “tokens” and “target_tokens”, which say the same: keep one.",
    ),
    "special tokens of another number": (
        lambda: npz({"weights": FULL, "tokens": WORDS, "special": [1, 0, 0]}),
        WeightsError,
        "There are 4 tokens, and it is said of 3 whether they are special.",
    ),
    "null": (
        lambda: in_json({"weights": None}),
        WeightsError,
        "There are no numbers in “weights”.",
    ),
    "arrays over the same bytes": (
        lambda: safe({"a": (0, 8), "b": (0, 8)}, 8),
        TraceFileError,
        "The file is damaged: several of its arrays lie over the same bytes.",
    ),
    "an array behind the end": (
        lambda: safe({"a": (0, 8), "b": (8, 16)}, 8),
        TraceFileError,
        "The file is cut off: an array is shorter than it says.",
    ),
    "many arrays": (
        lambda: safe({str(at): (0, 0) for at in range(4_097)}, 0),
        TraceFileError,
        "The file holds more than 4,096 arrays.",
    ),
    "ragged": (
        lambda: in_json({"weights": [[1, 0], [1]]}),
        WeightsError,
        "“weights” is no array: its rows have different lengths, or hold more than numbers.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_shown_is_refused_in_a_sentence(name: str):
    content, kind, sentence = REFUSED[name]
    with pytest.raises(kind) as refusal:
        load_arrays(content())
    assert str(refusal.value) == sentence


def test_a_large_file_is_refused_before_its_numbers_are_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(array_files, "MOST_BYTES", 100)
    monkeypatch.setattr(array_files, "MOST_JSON", 100)
    monkeypatch.setattr(np, "frombuffer", None)
    for content in (GOOD, SAFE, in_json(FULL.tolist())):
        with pytest.raises(TraceFileError, match="more than 0 MiB"):
            load_arrays(content)


def test_bfloat16_counts_as_what_it_becomes(monkeypatch: pytest.MonkeyPatch):
    content = safe({"a": (0, 4_000), "b": (4_000, 8_000)}, 8_000)
    monkeypatch.setattr(array_files, "MOST_BYTES", 15_999)
    monkeypatch.setattr(np, "frombuffer", None)
    with pytest.raises(TraceFileError, match="more than 0 MiB"):
        load_arrays(content)


def test_the_maps_of_a_model_s_run_are_saved_as_weights_of_one_s_own(translator: Translator):
    run = translator.translate("two three", max_length=3)
    file = io.BytesIO()
    save_arrays(run, file)
    again = load_arrays(file.getvalue())
    assert (run.holds, again.holds) == ("trace", "maps")
    assert (again.source_tokens, again.decoder_input_tokens) == (
        run.source_tokens,
        run.decoder_input_tokens,
    )
    for kind, (layers, heads) in run.config.sizes.items():
        for layer, head in np.ndindex(layers, heads):
            expected = run.weights(kind, layer, head)
            np.testing.assert_allclose(again.weights(kind, layer, head), expected, atol=1e-6)


SAID = {"tokens": ["a", "[SEP]", "b", "c"], "special": [True, False, False, True]}


@pytest.mark.parametrize(
    "content",
    [
        npz({"weights": FULL, **SAID}),
        in_json({"weights": FULL.tolist(), **SAID}),
        save_numbers({"weights": FULL}, {name: json.dumps(value) for name, value in SAID.items()}),
    ],
    ids=["npz", "json", "safetensors"],
)
def test_a_file_says_which_tokens_are_special_whatever_their_spelling_and_keeps_it(content: bytes):
    run = load_arrays(content)
    for _ in range(2):
        assert run.source_tokens == ("a", "▁[SEP]", "▁b", "c")
        assert [*map(is_special, run.source_tokens)] == SAID["special"]
        file = io.BytesIO()
        save_arrays(run, file)
        run = load_arrays(file.getvalue())
