from __future__ import annotations

import ast
import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from random_models import random_model
from safetensors.torch import load_file, save_file

import transformer
from transformer.config import TransformerConfig
from transformer.model import Transformer
from transformer.storage import directory as storage_directory
from transformer.storage import files
from transformer.storage.directory import load_checkpoint, save_checkpoint
from transformer.storage.files import CheckpointError
from transformer.text.tokenizer import Tokenizer

REPOSITORY = Path(__file__).parents[3]
HEADS = {"default": {"cross": [2, 1]}}
OTHER_HEADS = [
    {"default": {"cross": [10**9, 0]}},
    {"default": {"cross": [-1, 0]}},
    {"default": {"cross": "x"}},
    {"default": {"sideways": [0, 0]}},
    {"default": []},
    {"heads": {"cross": [[{"aer": 0.5}]]}},
    {"heads": {"cross": "x"}},
    {"heads": {"encoder": [[{"aer": "<script>"}] * 4] * 2}},
    {"aligner": None},
    {"aligner": {"heads": [[9, 0]], "rows": "read", "aer": 0.5}},
    {"aligner": {"heads": [], "rows": "read", "aer": 0.5}},
    {"aligner": {"heads": [[0, 0]], "rows": "<script>", "aer": 0.5}},
    {"aligner": {"heads": [[0, 0]], "rows": "read", "aer": "0.5"}},
    {"aligner": "x"},
]
"""What describes heads that the model does not have, or nothing."""
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"


@pytest.fixture
def model(tokenizer: Tokenizer) -> Transformer:
    return random_model(vocab_size=tokenizer.vocab_size, norm="pre", trained_length=30)


@pytest.fixture
def directory(tmp_path: Path, model: Transformer, tokenizer: Tokenizer) -> Path:
    save_checkpoint(tmp_path / "m", model.config, model.state_dict(), tokenizer, card="# card", heads=HEADS)
    return tmp_path / "m"


def test_a_model_comes_back_as_it_was_up_to_float16(directory: Path, model: Transformer) -> None:
    loaded = load_checkpoint(directory)
    assert loaded.config == model.config
    assert loaded.heads == HEADS
    assert loaded.card == "# card"
    for name, tensor in model.state_dict().items():
        found = loaded.model.state_dict()[name]
        assert found.dtype == torch.float32
        assert torch.equal(found, tensor.half().float())


def test_a_loaded_model_computes_and_cannot_be_trained_by_accident(directory: Path) -> None:
    loaded = load_checkpoint(directory).model
    assert not loaded.training
    assert not any(parameter.requires_grad for parameter in loaded.parameters())
    assert loaded(torch.tensor([[5, 2]]), torch.tensor([[1, 6]])).isfinite().all()


def test_loading_draws_no_random_numbers(directory: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    load_checkpoint(directory)
    assert torch.equal(torch.rand(1), expected)


def test_loading_imports_little(directory: Path) -> None:
    code = "import sys; from transformer.storage.directory import load_checkpoint; "
    code += (
        f"before = len(sys.modules); load_checkpoint({str(directory)!r}); print(len(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 50


def test_weights_are_stored_once_in_float16(directory: Path, model: Transformer) -> None:
    numbers = sum(parameter.numel() for parameter in model.parameters())
    assert (directory / "model.safetensors").stat().st_size < 2 * numbers + 20_000


def test_a_directory_holds_nothing_but_the_named_files(directory: Path) -> None:
    names = {path.name for path in directory.iterdir()}
    assert names == {"model.safetensors", "config.json", "tokenizer.model", "README.md", "heads.json"}


def test_card_and_heads_may_be_missing(directory: Path) -> None:
    (directory / "README.md").unlink()
    (directory / "heads.json").unlink()
    loaded = load_checkpoint(directory)
    assert (loaded.heads, loaded.card) == (None, "")


def cut(name: str, keep: int) -> Callable[[Path], object]:
    return lambda path: (path / name).write_bytes((path / name).read_bytes()[:keep])


def remove(name: str) -> Callable[[Path], object]:
    return lambda path: (path / name).unlink()


def write(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda path: (path / name).write_bytes(content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("heads.json", json.dumps(heads).encode()) for heads in OTHER_HEADS),
        ("heads.json", b'{"heads'),
        ("heads.json", b'{"default": ' + b"[" * 40 + b"]" * 40 + b"}"),
        ("heads.json", b'{"heads": {"cross": [[{"aer": 1' + b"0" * 400 + b"}]]}}"),
        ("heads.json", rb'{"default": {"cross": "\ud800"}}'),
        ("means.safetensors", b"x"),
        ("means.safetensors", POINTER),
    ],
    ids=range(20),
)
def test_a_damaged_description_of_heads_is_ignored_in_one_line(
    directory: Path, name: str, content: bytes
) -> None:
    (directory / name).write_bytes(content)
    loaded = load_checkpoint(directory)
    assert loaded.notes == (f"{name} beside the model is damaged, or another model's: it is ignored.",)
    assert (loaded.heads is None, loaded.means) == (name == "heads.json", None)


def change_config(**changes: Any) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        values = json.loads((path / "config.json").read_text(encoding="utf-8")) | changes
        (path / "config.json").write_text(json.dumps(values), encoding="utf-8")

    return change


def change_weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], object]:
    def apply(path: Path) -> None:
        tensors = load_file(path / "model.safetensors")
        change(tensors)
        save_file(tensors, path / "model.safetensors")

    return apply


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "no model directory"),
        (remove("config.json"), "no config.json"),
        (remove("tokenizer.model"), "no tokenizer.model"),
        (remove("model.safetensors"), "no model.safetensors"),
        (cut("config.json", 20), "not valid JSON"),
        (cut("model.safetensors", 100), "damaged, cut off"),
        (cut("model.safetensors", 20_000), "damaged, cut off"),
        (cut("model.safetensors", 0), "damaged, cut off"),
        (cut("tokenizer.model", 500), "tokenizer"),
        (write("config.json", b"[1]"), "not a JSON object"),
        (write("config.json", b"\xff\xfe"), "not valid JSON"),
        (write("config.json", b"[" * 100_000), "not valid JSON"),
        (write("config.json", b'{"model_type": "marian"}'), "marian model of another library"),
        (write("config.json", b'{"d_model": 32}'), "vocab_size"),
        (write("config.json", rb'{"model_type": "\ud800"}'), "not valid JSON"),
        (write("config.json", b'{"d_ff": 1' + b"0" * 400 + b"}"), "not valid JSON"),
        (write("model.safetensors", POINTER), "model.safetensors is a pointer of Git LFS; run git lfs pull"),
        (write("tokenizer.model", POINTER), "tokenizer.model is a pointer of Git LFS; run git lfs pull"),
        (write("model.safetensors", b"\x80\x02}q\x00."), "not a safetensors file"),
        (write("tokenizer.model", b"x"), "sentencepiece"),
        (change_config(vocab_size=301), "different models"),
        (change_config(d_ff=64), "asks for"),
        (change_config(n_decoder_layers=4), "lack [0-9]"),
        (change_config(n_decoder_layers=2), "does not describe"),
        (change_config(n_heads=5), "multiple of n_heads"),
        (change_config(d_model="32"), "d_model"),
        (change_config(d_model=None), "d_model"),
        (change_config(norm=["pre"]), "norm"),
        (change_config(surprise=1), "surprise"),
        (change_config(positions="unheard-of"), "unheard-of"),
        (change_config(n_encoder_layers=10**9), "n_encoder_layers"),
        (change_config(d_model=16_384, d_ff=65_536, n_encoder_layers=250), "at most"),
        (change_config(max_positions=1_000_000, d_model=16_384), "at most"),
        (change_config(d_model=4096, d_ff=16_384), "different models"),
        (change_weights(lambda tensors: tensors.pop("embedding.weight")), "lack 1"),
        (change_weights(lambda tensors: tensors["embedding.weight"].fill_(float("nan"))), "NaN or infinite"),
        (
            change_weights(lambda tensors: tensors.update({"embedding.weight": torch.ones(9, 9).int()})),
            "embedding.weight as I32",
        ),
    ],
)
def test_a_damaged_or_foreign_directory_is_one_clear_sentence(
    directory: Path, damage: Callable[[Path], object], message: str
) -> None:
    damage(directory)
    started = time.process_time()
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(directory)
    assert "\n" not in str(caught.value)
    assert time.process_time() - started < 5


def test_a_diverged_model_is_not_saved(tmp_path: Path, model: Transformer, tokenizer: Tokenizer) -> None:
    state = {name: tensor * 1e30 for name, tensor in model.state_dict().items()}
    with pytest.raises(CheckpointError, match="diverged"):
        save_checkpoint(tmp_path / "m", model.config, state, tokenizer)
    assert not (tmp_path / "m").exists()


class Crash(BaseException):
    """Stands for a process that dies at this very call."""


@pytest.mark.parametrize("call", range(1, 9))
@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_death_at_any_write_leaves_a_loadable_model(
    directory: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, call: int, function: str
) -> None:
    original, calls = getattr(os, function), []

    def crash(*arguments: Any) -> object:
        calls.append(arguments)
        if len(calls) == call:
            raise Crash
        return original(*arguments)

    newer = random_model(seed=1, vocab_size=tokenizer.vocab_size, norm="pre", trained_length=30)
    monkeypatch.setattr(files.os, function, crash)
    with contextlib.suppress(Crash):
        save_checkpoint(directory, newer.config, newer.state_dict(), tokenizer, card="# new", heads=HEADS)
    monkeypatch.undo()
    assert load_checkpoint(directory).config == newer.config


def test_a_full_disk_is_said_in_a_sentence_and_the_old_file_stays(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = (directory / "config.json").read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"config\.json could not be written: No space left on device\.$"):
        files.write_json(directory / "config.json", {})
    assert (directory / "config.json").read_bytes() == before
    assert not list(directory.glob(files.UNFINISHED))


def test_a_config_is_read_before_any_memory_is_taken(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(config: TransformerConfig) -> Transformer:
        raise AssertionError("the model was built")

    monkeypatch.setattr(storage_directory, "Transformer", forbidden)
    change_config(d_model=16_384, d_ff=65_536, n_encoder_layers=250)(directory)
    with pytest.raises(CheckpointError, match="parameters"):
        load_checkpoint(directory)


def test_no_module_of_the_package_can_pickle_and_what_reads_pickles_reads_numbers_only() -> None:
    for path in Path(transformer.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            )
            assert not {"pickle", "dill", "shelve", "joblib"} & set(names), path
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "torch"
            ):
                assert node.attr != "save", path
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
                assert "weights_only=True" in [ast.unparse(keyword) for keyword in node.keywords], path
