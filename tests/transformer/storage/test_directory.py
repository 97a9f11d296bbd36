"""Model directories: what is written comes back, a death leaves a model, and damage is one
sentence."""

import ast
import contextlib
import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from published import changed, rewritten
from random_models import random_model
from refusals import refused
from safetensors.torch import load_file

import transformer
from transformer import load_translator
from transformer.__main__ import main
from transformer.interventions import HeadMeans
from transformer.model import Transformer
from transformer.storage import files
from transformer.storage.description import MAX_CARD_BYTES, MEANS_FILE, WEIGHTS_FILE, read_card
from transformer.storage.directory import (
    load_checkpoint,
    read_means,
    save_checkpoint,
    step_of,
    write_means,
)
from transformer.storage.eight_bits import MOST, MULTIPLIER, packed, unpacked
from transformer.storage.files import CheckpointError, read_json
from transformer.storage.tensors import serialize_tensors
from transformer.text.tokenizer import Tokenizer

HEADS = {"default": {"cross": [2, 1]}, "aligner": {"heads": [[0, 3]], "rows": "read", "aer": 0.5}}
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Transformer:
    return random_model(vocab_size=tokenizer.vocab_size, norm="pre", trained_length=30)


@pytest.fixture(scope="module")
def original(
    tmp_path_factory: pytest.TempPathFactory, model: Transformer, tokenizer: Tokenizer
) -> Path:
    path = tmp_path_factory.mktemp("original") / "m"
    save_checkpoint(
        path, model.config, model.state_dict(), tokenizer, card="# card", heads=HEADS, step=7
    )
    return path


@pytest.fixture
def directory(tmp_path: Path, original: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "m"))


def test_a_model_comes_back_as_it_was_up_to_float16(directory: Path, model: Transformer) -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    loaded = load_checkpoint(directory)
    assert torch.equal(torch.rand(1), expected), "loading drew random numbers"
    assert (loaded.config, loaded.heads, loaded.card, loaded.notes) == (
        model.config,
        HEADS,
        "# card",
        (),
    )
    assert step_of(directory) == 7
    state = loaded.model.state_dict()
    assert {name: tensor.dtype for name, tensor in state.items()} == dict.fromkeys(
        state, torch.float32
    )
    for name, tensor in model.state_dict().items():
        assert torch.equal(state[name], tensor.half().float()), name
    assert not loaded.model.training
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())
    assert loaded.model(torch.tensor([[5, 2]]), torch.tensor([[1, 6]])).isfinite().all()


def test_a_directory_holds_each_weight_once_and_opens_without_card_and_heads(
    directory: Path, model: Transformer
) -> None:
    numbers = sum(parameter.numel() for parameter in model.parameters())
    assert (directory / "model.safetensors").stat().st_size < 2 * numbers + 20_000
    (directory / "README.md").write_text("x" * (MAX_CARD_BYTES + 1))
    assert read_card(directory) == "x" * MAX_CARD_BYTES
    (directory / "README.md").unlink()
    (directory / "heads.json").unlink()
    loaded = load_checkpoint(directory)
    assert (loaded.heads, loaded.card) == (None, "")


OTHER_HEADS: list[Any] = [
    {"default": {"cross": [3, 0]}},
    {"default": {"cross": [0, 4]}},
    {"default": {"cross": [-1, 0]}},
    {"default": {"sideways": [0, 0]}},
    {"heads": {"cross": [[{"aer": 0.5}] * 3] * 3}},
    {"heads": {"encoder": [[{"aer": "<script>"}] * 4] * 2}},
    {"aligner": {"heads": [[9, 0]], "rows": "read", "aer": 0.5}},
    {"aligner": {"heads": [], "rows": "read", "aer": 0.5}},
    {"aligner": {"heads": [[0, 0]], "rows": "<script>", "aer": 0.5}},
    {"aligner": "x"},
]
"""What describes heads that the model does not have, or nothing."""
BESIDE = [
    *(("heads.json", json.dumps(heads).encode()) for heads in OTHER_HEADS),
    ("heads.json", b'{"default": ' + b"[" * 40 + b"]" * 40 + b"}"),
    ("heads.json", b'{"heads": {"cross": [[{"aer": 1' + b"0" * 400 + b"}]]}}"),
    ("heads.json", b'{"default": {}, "notes": [' + b"0," * 40_000 + b"0]}"),
    ("means.safetensors", b"x"),
    ("means.safetensors", POINTER),
]


HALVES = [
    r'{"\ud800": 1}',
    r'{"a": {"b\udfff": 1}}',
    r'{"a": [{"\ud800": []}]}',
    r'{"a": "\ud800"}',
]


@pytest.mark.parametrize("content", HALVES)
def test_half_a_character_in_a_name_or_a_text_of_json_is_refused(tmp_path: Path, content: str):
    path = tmp_path / "config.json"
    path.write_text(content)
    with refused(CheckpointError, "is not valid JSON"):
        read_json(path)


@pytest.mark.parametrize("unit", ["0,", "[],", '{"a":1},'])
def test_a_json_file_of_many_values_is_refused_before_any_is_made(tmp_path: Path, unit: str):
    path = tmp_path / "heads.json"
    path.write_text('{"heads": [' + unit * (15 * 2**20 // len(unit)) + "0]}")
    with refused(CheckpointError, "more than 500,000 values, too many for this file of a model"):
        read_json(path)


@pytest.mark.parametrize(("name", "content"), BESIDE, ids=range(len(BESIDE)))
def test_a_damaged_file_beside_a_model_is_ignored_in_one_line(
    directory: Path, name: str, content: bytes
):
    (directory / name).write_bytes(content)
    loaded = load_checkpoint(directory)
    assert loaded.notes == (
        f"{name} beside the model is damaged, or another model's: it is ignored.",
    )
    assert (loaded.heads is None, loaded.means) == (name == "heads.json", None)


def cut(name: str, length: int) -> Damage:
    return lambda path: os.truncate(path / name, length)


def remove(name: str) -> Damage:
    return lambda path: (path / name).unlink()


def write(name: str, content: bytes) -> Damage:
    return lambda path: (path / name).write_bytes(content)


def config(**changes: Any) -> Damage:
    return lambda path: changed(path, **changes)


def eight_bits(name: str) -> Damage:
    """8 bits whose multipliers are not theirs."""

    def damage(path: Path) -> None:
        stored = packed(load_checkpoint(path).model.state_dict())
        weight = "encoder.layers.0.self_attention.q_proj.weight" + MULTIPLIER
        good = stored.pop(weight)
        others = {
            "shape": good[:3],
            "negative": -good,
            "half": good.half(),
            "infinite": good * torch.inf,
        }
        stored |= {weight: others[name]} if name in others else {}
        (path / WEIGHTS_FILE).write_bytes(serialize_tensors(stored, {}))

    return damage


HUGE = {"d_model": 16_384, "d_ff": 65_536, "n_encoder_layers": 250}
DAMAGES: list[tuple[Damage, str]] = [
    (shutil.rmtree, "no model directory"),
    *(
        (remove(name), f"no {name}")
        for name in ("config.json", "tokenizer.model", "model.safetensors")
    ),
    (cut("config.json", 20), "not valid JSON"),
    *((cut("model.safetensors", length), "damaged, cut off") for length in (0, 100, 20_000)),
    (cut("tokenizer.model", 500), "tokenizer"),
    (write("config.json", b"[1]"), "not a JSON object"),
    (write("config.json", b"\xff\xfe"), "not valid JSON"),
    (write("config.json", b'{"model_type": "marian"}'), "marian model of another library"),
    (write("config.json", b'{"d_model": 32}'), "vocab_size"),
    (write("config.json", rb'{"model_type": "\ud800"}'), "not valid JSON"),
    (
        write("model.safetensors", POINTER),
        "model.safetensors is a pointer of Git LFS; run git lfs pull",
    ),
    (
        write("tokenizer.model", POINTER),
        "tokenizer.model is a pointer of Git LFS; run git lfs pull",
    ),
    (write("model.safetensors", b"\x80\x02}q\x00."), "not a safetensors file"),
    (write("tokenizer.model", b"x"), "sentencepiece"),
    (config(vocab_size=301), "different models"),
    (config(d_ff=64), "asks for"),
    (config(n_decoder_layers=4), "lack [0-9]"),
    (config(n_decoder_layers=2), "does not describe"),
    (config(d_model="32"), "d_model"),
    (config(surprise=1), "surprise"),
    (config(max_positions=1_000_000, d_model=16_384), "at most"),
    (config(**HUGE), "at most"),
    (config(d_model=4096, d_ff=16_384), "different models"),
    (lambda path: rewritten(path, **{"embedding.weight": None}), "lack 1"),
    (
        lambda path: rewritten(path, **{"encoder.final_norm.bias": torch.full((32,), torch.nan)}),
        "NaN or infinite",
    ),
    (
        lambda path: rewritten(path, **{"embedding.weight": torch.ones(9, 9).int()}),
        "embedding.weight as I32",
    ),
    *(
        (eight_bits(name), "8 bits, but no multipliers")
        for name in ("gone", "shape", "negative", "half", "infinite")
    ),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES, ids=range(len(DAMAGES)))
def test_a_damaged_or_foreign_directory_is_one_clear_sentence(
    directory: Path, damage: Damage, message: str
):
    damage(directory)
    with refused(CheckpointError, message):
        load_checkpoint(directory)


def test_a_diverged_model_is_not_saved(
    tmp_path: Path, model: Transformer, tokenizer: Tokenizer
) -> None:
    state = {name: tensor * 1e30 for name, tensor in model.state_dict().items()}
    with refused(CheckpointError, "diverged"):
        save_checkpoint(tmp_path / "m", model.config, state, tokenizer)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("call", range(1, 9))
@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_death_at_any_write_leaves_a_loadable_model(
    directory: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, call: int, function: str
) -> None:
    original = getattr(os, function)
    calls = []

    def crash(*arguments: Any) -> object:
        calls.append(arguments)
        if len(calls) == call:
            raise KeyboardInterrupt
        return original(*arguments)

    newer = random_model(seed=1, vocab_size=tokenizer.vocab_size, norm="pre", trained_length=30)
    monkeypatch.setattr(files.os, function, crash)
    with contextlib.suppress(KeyboardInterrupt):
        save_checkpoint(
            directory, newer.config, newer.state_dict(), tokenizer, card="# new", heads=HEADS
        )
    monkeypatch.undo()
    assert load_checkpoint(directory).config == newer.config


def test_a_full_disk_is_said_in_a_sentence_and_the_old_file_stays(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = (directory / "config.json").read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with refused(OSError, r"config\.json could not be written: No space left on device\.$"):
        files.write_json(directory / "config.json", {})
    assert (directory / "config.json").read_bytes() == before
    assert not list(directory.glob(files.UNFINISHED))


def test_no_module_of_the_package_can_pickle_and_what_reads_pickles_reads_numbers_only() -> None:
    for path in Path(transformer.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            imported = node.names if isinstance(node, ast.Import | ast.ImportFrom) else []
            assert not {"pickle", "dill", "shelve", "joblib"} & {
                alias.name for alias in imported
            }, path
            if isinstance(node, ast.Attribute):
                assert ast.unparse(node) != "torch.save", path
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
                assert "weights_only=True" in [ast.unparse(keyword) for keyword in node.keywords], (
                    path
                )


def restored(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return dict(unpacked(Path("x"), state))


def test_a_matrix_loses_at_most_half_a_step_of_its_row_in_8_bits_and_a_vector_nothing():
    torch.manual_seed(0)
    state = {
        "w": torch.randn(6, 40) * torch.logspace(-3, 3, 6)[:, None],
        "b": torch.tensor([1 / 3, 0.5]),
    }
    state["w"][2] = 0
    state["h"] = torch.tensor([0.25, -2.0])
    stored = packed(state)
    assert [stored[name].dtype for name in "wbh"] == [torch.int8, torch.float32, torch.float16]
    values = restored(stored)
    assert torch.equal(values["b"], state["b"])
    steps = state["w"].abs().amax(1) / MOST
    assert ((values["w"] - state["w"]).abs() <= 0.501 * steps[:, None]).all()
    again = packed(values)
    assert torch.equal(again["w"], stored["w"])
    assert torch.equal(restored(again)["w"], values["w"])
    with refused(CheckpointError, "w has values"):
        packed({"w": torch.tensor([[1.0, torch.nan]])})


def test_a_matrix_that_was_in_8_bits_before_loses_nothing():
    numbers = torch.randint(-MOST, MOST + 1, (30, 20))
    numbers[numbers.abs() < 2] = 2
    weight = numbers.float() / torch.tensor(61.37193)
    stored = packed({"w": weight})
    assert torch.equal(restored(stored)["w"], weight)
    assert stored["w" + MULTIPLIER].dim() == 0


def test_a_compressed_model_has_the_step_the_card_and_nearly_the_weights(
    original: Path, tmp_path: Path
):
    assert main(["compress", "--model", str(original), "--output", str(tmp_path / "new")]) == 0
    half = load_checkpoint(original)
    new = load_checkpoint(tmp_path / "new")
    assert (new.card, step_of(tmp_path / "new")) == ("# card", 7)
    assert load_file(tmp_path / "new" / WEIGHTS_FILE)["embedding.weight"].dtype == torch.int8
    for name, weight in half.model.state_dict().items():
        least = weight.abs().amax(-1, keepdim=True) / MOST
        assert bool(((new.model.state_dict()[name] - weight).abs() <= least).all()), name


def means_of(config: Any, heads: int | None = None) -> HeadMeans:
    """Random mean outputs of the heads, in a few of their numbers."""
    generator = torch.Generator().manual_seed(0)
    outputs = {
        kind: torch.randn(
            site.n_layers, heads or config.n_heads, config.d_head, generator=generator
        )
        for kind, site in config.sites.items()
    }
    return HeadMeans(outputs, {"data": "three pairs"})


def test_means_come_back_but_those_of_other_weights_or_another_model_are_not_used(directory: Path):
    config = load_checkpoint(directory).config
    write_means(directory, means := means_of(config))
    opened = load_translator(directory).means
    assert opened.about == means.about
    for kind, outputs in means.outputs.items():
        assert torch.equal(opened.outputs[kind], outputs)
    content = (directory / MEANS_FILE).read_bytes()
    for damage, words in (
        (lambda: write_means(directory, means_of(config, heads=1)), r"another model; remove it\.$"),
        (lambda: (directory / MEANS_FILE).write_bytes(content[:100]), "damaged"),
    ):
        damage()
        with refused(CheckpointError, words):
            read_means(directory, config)
    (directory / MEANS_FILE).write_bytes(content)
    assert read_means(directory, config) is not None
    with (directory / WEIGHTS_FILE).open("ab") as file:
        file.write(b" ")
    assert read_means(directory, config) is None
