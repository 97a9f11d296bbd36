"""Weights in 8 bits, and files that two models have in common."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from firefox_files import random_model, write_firefox
from hub_server import running_hub
from huggingface_hub import constants
from transformer.training.runs.snapshots import load_snapshot, save_snapshot, snapshot_file, snapshot_steps

from transformer import load_translator
from transformer.__main__ import main
from transformer.families.firefox.model import load_firefox
from transformer.hub.fetch import find
from transformer.hub.push import push_to_hub
from transformer.hub.settings import Hub
from transformer.storage.description import model_digests
from transformer.storage.directory import load_checkpoint, save_checkpoint
from transformer.storage.eight_bits import MOST, MULTIPLIER, packed, stored_as, unpacked
from transformer.storage.files import CheckpointError
from transformer.storage.shared import SHARED_FILE, shared_bytes
from transformer.storage.tensors import serialize_tensors

SRC, TGT = torch.tensor([[5, 7, 9, 0]]), torch.tensor([[60, 11, 12]])


def test_a_matrix_loses_at_most_half_a_step_of_its_row_and_a_vector_nothing():
    torch.manual_seed(0)
    state = {"w": torch.randn(6, 40) * torch.logspace(-3, 3, 6)[:, None], "b": torch.tensor([1 / 3, 0.5])}
    state["w"][2] = 0
    stored = packed(state)
    assert stored["w"].dtype == torch.int8
    found = dict(unpacked(Path("x"), stored))
    assert torch.equal(found["b"], state["b"])
    steps = state["w"].abs().amax(1) / MOST
    assert ((found["w"] - state["w"]).abs() <= 0.501 * steps[:, None]).all()
    again = packed(found)
    assert torch.equal(again["w"], stored["w"])
    assert torch.equal(dict(unpacked(Path("x"), again))["w"], found["w"])


@pytest.mark.parametrize("least", [1, 2, 3])
def test_a_matrix_that_was_in_8_bits_before_loses_nothing(least):
    numbers = torch.randint(-MOST, MOST + 1, (30, 20))
    numbers[numbers.abs() < least] = least
    weight = numbers.float() / torch.tensor(61.37193)
    found = dict(unpacked(Path("x"), packed({"w": weight})))["w"]
    assert torch.equal(found, weight)


def test_a_weight_that_is_not_finite_is_not_stored():
    with pytest.raises(CheckpointError, match="w has values"):
        packed({"w": torch.tensor([[1.0, torch.nan]])})


def test_the_snapshots_of_a_run_are_stored_in_8_bits_too(models, tmp_path):
    state = load_checkpoint(models / "first").model.state_dict()
    for step, factor in (0, 0.5), (8, 1.0):
        save_snapshot(models / "first", step, {name: factor * weight for name, weight in state.items()})
    assert main(["compress", "--model", str(models / "first"), "--output", str(tmp_path / "new")]) == 0
    found = load_snapshot(tmp_path / "new", 8).model.state_dict()
    assert all(torch.allclose(found[name], weight, atol=0.02) for name, weight in state.items())
    assert stored_as(snapshot_file(models / "first", 8)) == "float16"
    assert stored_as(snapshot_file(tmp_path / "new", 8)) == "8 bits"
    assert snapshot_steps(tmp_path / "new") == (0, 8)


@pytest.fixture
def models(tmp_path):
    """A model of Firefox, the same in 8 bits, and another with the same encoder that shares it."""
    model = random_model()
    write_firefox(tmp_path / "theirs", model)
    assert main(["compress", "--model", str(tmp_path / "theirs"), "--output", str(tmp_path / "first")]) == 0
    found = load_checkpoint(tmp_path / "first")
    state = found.model.state_dict() | {
        name: tensor + 0.1 for name, tensor in found.model.state_dict().items() if "decoder.layers" in name
    }
    save_checkpoint(tmp_path / "half", found.config, state, found.tokenizer, card="# half", step=7)
    command = ["compress", "--model", tmp_path / "half", "--output", tmp_path / "second"]
    assert main([str(each) for each in [*command, "--share", tmp_path / "first"]]) == 0
    return tmp_path


def test_a_model_of_firefox_is_the_same_in_our_files(models):
    first, theirs = load_checkpoint(models / "first"), load_firefox(models / "theirs")
    assert first.rules == theirs.rules
    for name, tensor in theirs.model.state_dict().items():
        assert torch.equal(first.model.state_dict()[name], tensor)


def test_what_two_models_have_in_common_is_stored_once(models):
    second, half = (load_checkpoint(models / name) for name in ("second", "half"))
    first = load_checkpoint(models / "first").model.state_dict()
    for name, tensor in second.model.state_dict().items():
        if "decoder.layers" not in name:
            assert torch.equal(tensor, first[name])
        torch.testing.assert_close(tensor, half.model.state_dict()[name], atol=0.02, rtol=0)
    assert not (models / "second/tokenizer.model").exists()
    sizes = [(models / name / "model.safetensors").stat().st_size for name in ("first", "second")]
    assert sizes[1] < 0.6 * sizes[0]
    assert load_translator(models / "second").translate("the old house").steps
    assert set(model_digests(models / "second")) == {"config.json", "model.safetensors", SHARED_FILE}


@pytest.mark.filterwarnings("ignore:Use 'content")
def test_a_pushed_model_holds_what_it_shared(models, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    with running_hub() as server:
        hub = Hub(endpoint=server.url, cache_dir=models / "cache", token="hf_test", timeout=2.0)
        push_to_hub(models / "second", "user/own", license="mpl-2.0", languages=("en", "pt"), hub=hub)
        pulled = find("user/own", None, hub).directory
    assert (pulled / "tokenizer.model").exists()
    assert not (pulled / SHARED_FILE).exists()
    found, own = (load_checkpoint(each).model for each in (pulled, models / "second"))
    assert torch.equal(found(SRC, TGT), own(SRC, TGT))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("../first/nothing", "not there"),
        ("../../elsewhere", "outside"),
        ("model.safetensors", "own directory"),
        ("../first/config.json", "SHA-256 differs"),
        (None, "does not say"),
    ],
)
def test_a_file_that_cannot_be_shared_is_refused_in_a_sentence(models, path, message):
    file = models / "second" / SHARED_FILE
    entries = json.loads(file.read_text("utf-8"))
    entries["model.safetensors"]["path"] = path
    file.write_text(json.dumps(entries), "utf-8")
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(models / "second")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("names", [("first",), ("first", "third")])
def test_a_circle_of_files_is_named_in_one_sentence(models, names):
    """Each names the tokenizer of the next, and the last that of the one which is opened."""
    for folder, following in pairwise(("second", *names, "second")):
        (models / folder).mkdir(exist_ok=True)
        (models / folder / "tokenizer.model").unlink(missing_ok=True)
        entries = {}
        if (models / folder / SHARED_FILE).exists():
            entries = json.loads((models / folder / SHARED_FILE).read_text("utf-8"))
        entries["tokenizer.model"] = {"path": f"../{following}/tokenizer.model", "sha256": "0" * 64}
        (models / folder / SHARED_FILE).write_text(json.dumps(entries), "utf-8")
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(models / "second")
    circle = " → ".join(("second", *names, "second"))
    assert f"nobody has: the directories name one another in a circle ({circle})." in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_only_named_elsewhere_is_told_apart_from_a_circle(models):
    shutil.copytree(models / "second", models / "third")
    entries = json.loads((models / "third" / SHARED_FILE).read_text("utf-8"))
    entries["tokenizer.model"]["path"] = "../second/tokenizer.model"
    (models / "third" / SHARED_FILE).write_text(json.dumps(entries), "utf-8")
    with pytest.raises(CheckpointError, match=r"not there, but only named by second/shared\.json"):
        load_checkpoint(models / "third")


def test_what_a_directory_needs_of_others_is_counted(models):
    found = shared_bytes(models / "second")
    files = ("model.safetensors", "tokenizer.model")
    assert found == {"first": sum((models / "first" / name).stat().st_size for name in files)}
    assert shared_bytes(models / "first") == {}
    (models / "second" / SHARED_FILE).write_text("{", "utf-8")
    assert shared_bytes(models / "second") == {}


def test_a_circle_of_files_is_refused(models):
    entries = json.loads((models / "second" / SHARED_FILE).read_text("utf-8"))
    shutil.copy(models / "second" / SHARED_FILE, models / "first" / SHARED_FILE)
    (models / "first/tokenizer.model").unlink()
    assert entries["tokenizer.model"]["path"] == "../first/tokenizer.model"
    with pytest.raises(CheckpointError, match="in a circle"):
        load_checkpoint(models / "second")


@pytest.mark.parametrize("damage", ["missing", "shape", "negative", "type"])
def test_8_bits_without_multipliers_of_their_own_are_refused(models, damage):
    name = "encoder.layers.0.self_attention.q_proj.weight"
    checkpoint = load_checkpoint(models / "half")
    stored = packed(checkpoint.model.state_dict())
    good = stored[name + MULTIPLIER]
    stored[name + MULTIPLIER] = {"shape": good[:3], "negative": -good, "type": good.half()}.get(damage, good)
    if damage == "missing":
        del stored[name + MULTIPLIER]
    (models / "half/model.safetensors").write_bytes(serialize_tensors(stored, {}))
    with pytest.raises(CheckpointError, match=r"8 bits, but no multipliers"):
        load_checkpoint(models / "half")
