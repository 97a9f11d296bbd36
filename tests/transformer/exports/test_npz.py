from __future__ import annotations

import contextlib
import io
import json
import warnings
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from closed_form import CASES, make_tokenizer
from damaged import TEXTS
from hypothesis import given
from hypothesis import strategies as st
from properties import PROPERTY, damaged, or_refused
from random_models import random_model

from transformer.config import AttentionKind
from transformer.encodings import REGISTRY
from transformer.exports.npz import NOTE, RECORDED, load_trace, model_digest, save_trace
from transformer.exports.record import TraceFileError
from transformer.run import NotCapturedError
from transformer.storage.packed import MOST_ARRAYS
from transformer.translator import Translator


@pytest.fixture
def saved(translator: Translator, tmp_path: Path) -> Path:
    path = tmp_path / "trace.npz"
    save_trace(translator.translate("one two three", beam_size=2), path, translator.model)
    return path


def rewritten(path: Path, change) -> Path:
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    meta = json.loads(arrays["meta"].tobytes())
    change(arrays, meta)
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    np.savez(path, allow_pickle=False, **arrays)
    return path


def test_a_saved_translation_opens_again_as_it_was(translator, saved):
    original, opened = translator.translate("one two three", beam_size=2), load_trace(saved)
    assert opened.steps == original.steps
    assert opened.text == original.text
    assert opened.config == original.config
    for kind, layer in original.attention.places:
        np.testing.assert_array_equal(
            opened.attention.weights(kind, layer), original.attention.weights(kind, layer)
        )
    np.testing.assert_array_equal(
        opened.trace.embeddings["encoder"].tokens.numpy(), original.trace.embeddings["encoder"].tokens.numpy()
    )


def test_an_opened_file_proves_itself_and_says_what_it_only_recorded(saved):
    view = load_trace(saved).head("cross", 0, 1)
    assert view.audit.passed
    assert RECORDED in {check.name for check in view.audit.checks}
    assert view.audit.imported
    assert NOTE in load_trace(saved).notes


def test_known_cells_survive_the_file(solved, tmp_path):
    case, path = CASES[solved.name], tmp_path / "trace.npz"
    save_trace(solved.translate(case.sentence), path)
    for kind in AttentionKind:
        view = load_trace(path).head(kind, 0, 0)
        assert tuple(view.weights.argmax(-1)) == case.keys(kind, 0)


def test_a_file_keeps_what_each_key_contributes_through_the_output_projection(translator, saved):
    original, opened = translator.translate("one two three", beam_size=2), load_trace(saved)
    assert original.attention.layer("cross", 1).value_norms is None
    projection = translator.model.decoder.layers[1].cross_attention.out_proj.weight.detach().numpy()
    view = original.head("cross", 1, 2)
    d_head = view.value.shape[1]
    vectors = view.weights[..., None] * (view.value @ projection[:, 2 * d_head : 3 * d_head].T)
    np.testing.assert_allclose(
        view.weights * opened.attention.layer("cross", 1).value_norms[2].numpy(),
        np.linalg.norm(vectors, axis=-1),
        rtol=1e-4,
        atol=1e-6,
    )


def test_a_file_names_its_model_by_a_digest_and_keeps_it_when_saved_again(translator, saved, tmp_path):
    opened = load_trace(saved)
    assert opened.model_sha256 == model_digest(translator.model)
    save_trace(opened, tmp_path / "again.npz")
    again = load_trace(tmp_path / "again.npz")
    assert again.model_sha256 == opened.model_sha256
    assert again.notes == opened.notes
    np.testing.assert_array_equal(
        again.attention.layer("encoder", 0).value_norms, opened.attention.layer("encoder", 0).value_norms
    )


@pytest.mark.parametrize("positions", REGISTRY)
def test_every_positional_encoding_survives_as_a_rule(tokenizer, positions, tmp_path):
    model = random_model(vocab_size=tokenizer.vocab_size, positions=positions)
    original = Translator(model, tokenizer).translate("one two three four")
    save_trace(original, tmp_path / "trace.npz", model)
    opened = load_trace(tmp_path / "trace.npz")
    assert opened.attention.audit().passed
    for kind, layer in original.attention.places:
        np.testing.assert_array_equal(
            opened.attention.scores(kind, layer), original.attention.scores(kind, layer)
        )
        bias = original.attention.map(kind, layer).bias
        assert (bias is None) == (opened.attention.map(kind, layer).bias is None)


def test_a_changed_number_turns_the_audit_red(saved):
    def change(arrays, meta):
        arrays["decoder.0.cross_attention.heads"] += np.float32(0.1)

    assert not load_trace(rewritten(saved, change)).head("cross", 0, 0).audit.passed


@cache
def parts() -> tuple[dict[str, Any], Any]:
    """Arrays and metadata of a file."""
    tokenizer, file = make_tokenizer(), io.BytesIO()
    model = random_model(norm="pre", vocab_size=tokenizer.vocab_size)
    save_trace(Translator(model, tokenizer).translate("one two three", max_length=4), file, model)
    with np.load(io.BytesIO(file.getvalue()), allow_pickle=False) as opened:
        arrays = dict(opened)
    return arrays, json.loads(arrays.pop("meta").tobytes())


def packed(arrays: dict[str, Any], meta: Any) -> io.BytesIO:
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, meta=np.frombuffer(json.dumps(meta).encode(), np.uint8), **arrays)
    return io.BytesIO(file.getvalue())


@PROPERTY
@given(st.deferred(lambda: damaged(parts()[1])))
def test_a_file_whose_run_was_damaged_is_refused_in_one_sentence_or_survives(meta: Any):
    with or_refused(TraceFileError):
        opened = load_trace(packed(parts()[0], meta))
        save_trace(opened, again := io.BytesIO())
        assert load_trace(io.BytesIO(again.getvalue())).steps == opened.steps


DAMAGES = {
    "shorter": lambda array: array[:-1],
    "of another type": lambda array: array.astype("float64"),
    "scaled": lambda array: array * np.float32(1.5),
    "no numbers": lambda array: array * np.float32("nan"),
}
CHECKED = set(DAMAGES) - {"scaled"}
"""What is refused of any array; others may lack, and then nothing is claimed of them."""


@PROPERTY
@given(
    st.deferred(lambda: st.sampled_from(sorted(parts()[0]))),
    st.sampled_from([*DAMAGES, "", ".", ".0", "é", "\n"]),
)
def test_a_file_whose_arrays_were_damaged_is_refused_in_one_sentence_or_turns_red(name: str, how: str):
    arrays, meta = parts()
    array, arrays = arrays[name], {each: array for each, array in arrays.items() if each != name}
    if how:
        arrays[name if how in DAMAGES else name + how] = DAMAGES.get(how, np.asarray)(array)
    with or_refused(TraceFileError):
        unproven = name.endswith("value_norms") and how not in CHECKED  # W_O is not in the file
        assert load_trace(packed(arrays, meta)).audit().passed is unproven


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, meta: meta["run"]["target_tokens"].pop(),
        lambda arrays, meta: meta["run"]["config"].update(n_decoder_layers=200),
        lambda arrays, meta: meta["run"]["source_tokens"].append("\ud800"),
        lambda arrays, meta: meta["run"]["steps"][0].update(token_id=-1),
        lambda arrays, meta: meta["run"].update(text=meta["run"]["text"] + " nicht"),
        lambda arrays, meta: meta["run"].update(source_text="one two four"),
        lambda arrays, meta: meta.update(version=3),
        lambda arrays, meta: arrays.update({"encoder.0.self_attention.bias": np.zeros(4, np.float32)}),
    ],
)
def test_a_file_that_contradicts_itself_is_refused_in_one_sentence(saved, change):
    with pytest.raises(TraceFileError, match=r"^The [^\n]+\.$"):
        load_trace(rewritten(saved, change))


def test_an_array_that_a_file_holds_twice_is_refused(saved):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(saved, "a") as archive:
            archive.writestr(
                "decoder.0.cross_attention.key.npy", archive.read("decoder.0.cross_attention.key.npy")
            )
    with pytest.raises(TraceFileError, match="two arrays of one name"):
        load_trace(saved)


@pytest.mark.parametrize("text", ["one  two", "Ünï-ﬁ 12½ 😀 ¿!", "ONE two"])
def test_any_text_is_spelled_by_its_pieces(translator, tmp_path, text):
    save_trace(translator.force(text, f"{text} 中"), tmp_path / "trace.npz")
    assert load_trace(tmp_path / "trace.npz").source_text.split() == text.split()


def test_files_that_are_cut_off_are_refused(saved):
    content = saved.read_bytes()
    for cut in (b"no zip", content[: len(content) // 2], content[:-30]):
        with pytest.raises(TraceFileError):
            load_trace(io.BytesIO(cut))


def test_random_changes_of_single_bytes_are_refused_or_change_nothing(saved):
    content, generator = saved.read_bytes(), np.random.default_rng(3)
    for place in generator.integers(0, len(content), 60):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(generator.integers(8))
        with contextlib.suppress(TraceFileError):
            assert load_trace(io.BytesIO(bytes(damaged))).text == load_trace(saved).text


@pytest.mark.parametrize("meta", TEXTS.values(), ids=TEXTS)
def test_hostile_json_inside_a_file_is_refused(tmp_path, meta):
    np.savez(tmp_path / "trace.npz", meta=np.frombuffer(meta, np.uint8))
    with pytest.raises(TraceFileError, match=r"^The [^\n]+\.$"):
        load_trace(tmp_path / "trace.npz")


def test_a_pickle_is_never_opened(tmp_path):
    np.savez(tmp_path / "pickle.npz", meta=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(TraceFileError):
        load_trace(tmp_path / "pickle.npz")


def repacked(path: Path, how: int = zipfile.ZIP_DEFLATED, more: int = 0, **others: bytes) -> Path:
    """A saved trace, packed in another way, with other files and so many more of them."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files |= {f"{name}.npy": content for name, content in others.items()}
    files |= {f"{number}.npy": b"" for number in range(more)}
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def header(shape: str, length: int = 0) -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape})}}".ljust(length).encode()
    return b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"how": zipfile.ZIP_LZMA}, "packed in a way"),
        ({"how": zipfile.ZIP_BZIP2}, "packed in a way"),
        ({"more": MOST_ARRAYS}, "256 MiB"),
        ({"bomb": bytes(2**28)}, "256 MiB"),
        ({"meta": header("1," * 30_000)}, "damaged, or this package did not write it"),
        ({"meta": header("1,", 2**26)}, "damaged, or this package did not write it"),
        ({"meta": header("1000000000, 1000")}, "no file of this package"),
        ({"extra": header("1000000000, 1000")}, "cut off"),
    ],
)
def test_a_bomb_is_refused_before_it_is_unpacked(saved: Path, options: Any, message: str) -> None:
    load_trace(saved)
    with pytest.raises(TraceFileError, match=message):
        load_trace(repacked(saved, **options))


def test_what_was_not_recorded_or_was_changed_by_hand_is_not_saved(translator, tmp_path):
    with pytest.raises(NotCapturedError):
        save_trace(translator.translate("one", capture=False), tmp_path / "none.npz")
    hooked = translator.translate(
        "one", hooks={"encoder.0.self_attention.weights": lambda values, first: values}
    )
    with pytest.raises(TraceFileError, match="hooks"):
        save_trace(hooked, tmp_path / "hooked.npz")
