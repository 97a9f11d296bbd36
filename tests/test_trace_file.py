from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from closed_form import CASES

from transformer.capture import AttentionKind
from transformer.hooks import Hook
from transformer.trace_file import RECORDED, TraceFileError, load_trace, save_trace
from transformer.translation import NotCapturedError
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
    np.testing.assert_array_equal(opened.embeddings("encoder"), original.embeddings("encoder"))


def test_an_opened_file_proves_itself_and_says_what_it_only_recorded(saved):
    view = load_trace(saved).head("cross", 0, 1)
    assert view.audit.passed
    assert RECORDED in {check.name for check in view.audit.checks}
    assert "Imported file." in load_trace(saved).notes


def test_known_cells_survive_the_file(solved, tmp_path):
    case, path = CASES[solved.name], tmp_path / "trace.npz"
    save_trace(solved.translate(case.sentence), path)
    for kind in AttentionKind:
        view = load_trace(path).head(kind, 0, 0)
        assert tuple(view.weights.argmax(-1)) == case.keys(kind, 0)


def test_a_changed_number_turns_the_audit_red(saved):
    def change(arrays, meta):
        arrays["cross.0.output"] = arrays["cross.0.output"] + 0.1

    assert not load_trace(rewritten(saved, change)).head("cross", 0, 0).audit.passed


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, meta: meta.update(version=2),
        lambda arrays, meta: meta.pop("steps"),
        lambda arrays, meta: meta["target_tokens"].pop(),
        lambda arrays, meta: meta["config"].update(n_decoder_layers=200),
        lambda arrays, meta: meta["config"].update(d_model=10**9),
        lambda arrays, meta: meta["source_tokens"].append(7),
        lambda arrays, meta: arrays.pop("cross.0.key"),
        lambda arrays, meta: arrays.update({"cross.0.key": arrays["cross.0.key"][:, :-1]}),
        lambda arrays, meta: arrays.update({"cross.0.key": arrays["cross.0.key"].astype("float64")}),
    ],
)
def test_a_file_that_contradicts_itself_is_refused_in_one_sentence(saved, change):
    with pytest.raises(TraceFileError, match=r"^The [^\n]+\.$"):
        load_trace(rewritten(saved, change))


def test_damaged_and_foreign_files_are_refused(saved):
    content = saved.read_bytes()
    for damaged in (b"", b"no zip", content[: len(content) // 2], content[:-30]):
        with pytest.raises(TraceFileError):
            load_trace(io.BytesIO(damaged))


def test_an_array_that_claims_to_be_huge_takes_no_memory(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (10**9, 10**3)}
    )
    path = tmp_path / "huge.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("cross.0.key.npy", header.getvalue())
    with pytest.raises(TraceFileError, match="cut off"):
        load_trace(path)


def test_a_bomb_is_refused_by_its_unpacked_size(tmp_path):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in range(5):
            archive.writestr(f"{name}.npy", b"\0" * 2**26)
    with pytest.raises(TraceFileError, match="256 MiB"):
        load_trace(path)


def test_what_was_not_recorded_or_was_changed_by_hand_is_not_saved(translator, tmp_path):
    with pytest.raises(NotCapturedError):
        save_trace(translator.translate("one", capture=False), tmp_path / "none.npz")
    hooked = translator.translate("one", hooks=[Hook(lambda values, **_: values)])
    with pytest.raises(TraceFileError, match="hooks"):
        save_trace(hooked, tmp_path / "hooked.npz")
