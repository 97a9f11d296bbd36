"""Publishing models, and the commands that exchange them with the Hub."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hub_server import running_hub
from huggingface_hub import ModelCard, constants
from marian_models import write_marian
from programs import main

from transformer import load_translator
from transformer.hub.cache import cached
from transformer.hub.fetch import find
from transformer.hub.push import published_card, push_to_hub
from transformer.hub.settings import Hub, HubError
from transformer.storage.directory import save_checkpoint
from transformer.storage.files import CheckpointError

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content")
"""What huggingface_hub does when it uploads without xet."""
ROOT = Path(__file__).parents[3]
NAME = "user/own"
CARD = """---
language: [en, de]
license: cc-by-4.0
tags: [mine]
model-index:
- name: own
  results:
  - task: {type: translation}
    dataset: {type: tatoeba, name: Tatoeba}
    metrics: [{type: bleu, value: 39.7}]
---

# My model

Made by hand.
"""


@pytest.fixture(scope="module")
def directory(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    state, heads = translator.model.state_dict(), {"default": {}, "heads": {}}
    save_checkpoint(folder, translator.config, state, translator.tokenizer, card=CARD, heads=heads)
    (folder / "training.safetensors").write_bytes(b"x" * 1000)
    (folder / "log.jsonl").write_text("{}")
    return folder


@pytest.fixture
def server():
    with running_hub() as server:
        yield server


@pytest.fixture
def hub(server, tmp_path, monkeypatch):
    hub = Hub(endpoint=server.url, cache_dir=tmp_path / "cache", token="hf_test", timeout=2.0)
    monkeypatch.setattr(Hub, "from_environment", classmethod(lambda cls: hub))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    return hub


def test_a_pushed_model_comes_back_the_same(server, hub, directory):
    pushed = push_to_hub(directory, NAME)
    assert pushed.url == f"{server.url}/{NAME}"
    loaded = load_translator(NAME)
    assert loaded.name == f"{NAME}@{pushed.commit[:8]}"
    expected = load_translator(directory).translate("one two three")
    assert torch.tensor(loaded.translate("one two three").log_probs).equal(torch.tensor(expected.log_probs))


def test_only_the_model_s_files_are_pushed_as_one_commit(server, hub, directory):
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    pushed = push_to_hub(directory, NAME)
    files = server.repositories[NAME].commits[pushed.commit]
    assert set(files) == {"config.json", "tokenizer.model", "model.safetensors", "heads.json", "README.md"}
    assert len(server.repositories[NAME].commits) == 1
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


def test_a_second_push_is_a_new_state_of_the_same_model(server, hub, directory, tmp_path):
    first = push_to_hub(directory, NAME)
    second = push_to_hub(directory, NAME, license="mit")
    assert first.commit != second.commit
    assert find(NAME).commit == second.commit
    assert find(NAME, first.commit).commit == first.commit


def test_a_private_model_is_private(server, hub, directory):
    push_to_hub(directory, NAME, private=True)
    assert server.repositories[NAME].private
    anonymous = Hub(endpoint=server.url, cache_dir=hub.cache.parent / "other", token=False, timeout=2.0)
    with pytest.raises(HubError, match="or it is private"):
        find(NAME, None, anonymous)


def test_the_card_s_head_makes_a_model_findable_and_its_text_stays():
    card = published_card(CARD, NAME, None, (), "attention-explorer")
    data = ModelCard(card).data
    assert (data.language, data.license, data.library_name) == (
        ["en", "de"],
        "cc-by-4.0",
        "attention-explorer",
    )
    assert (data.pipeline_tag, data.metrics) == ("translation", ["bleu"])
    assert data.tags[0] == "mine"
    assert {"translation", "attention"} <= set(data.tags)
    assert data.eval_results[0].metric_value == 39.7
    assert "Made by hand." in card
    assert f'load_translator("{NAME}")' in card
    assert published_card(card, NAME, None, (), "attention-explorer") == card


def test_a_card_that_is_missing_is_made_from_what_was_said():
    card = published_card("", NAME, "mit", ["en", "fr"], "transformers")
    data = ModelCard(card).data
    assert (data.language, data.license, data.library_name) == (["en", "fr"], "mit", "transformers")
    assert "# own" in card


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ("# Hello", "names no license; add one to the card, or pass --license"),
        ("---\nlicense: mit\n---\n", "names no language"),
        ("---\na: [\n---\n", "is not valid YAML"),
        ("---\n- 1\n---\n", "is not valid YAML"),
        ("---\na: " + "[" * 400 + "\n---\n", "is not valid YAML"),
    ],
    ids=range(5),
)
def test_a_card_without_what_readers_need_is_refused(card, message):
    with pytest.raises(HubError, match=message):
        published_card(card, NAME, None, (), "attention-explorer")


def test_a_damaged_directory_is_not_pushed(server, hub, directory, tmp_path):
    with pytest.raises(CheckpointError, match="There is no model directory"):
        push_to_hub(tmp_path / "nothing", NAME)
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        push_to_hub(tmp_path, NAME)
    for name in ("config.json", "tokenizer.model"):
        (tmp_path / name).write_bytes((directory / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"x" * 100)
    with pytest.raises(CheckpointError, match="damaged, cut off"):
        push_to_hub(tmp_path, NAME)
    with pytest.raises(HubError, match="not a model name on the Hub"):
        push_to_hub(directory, "../own")
    assert server.requests == []


def test_a_push_without_a_login_says_what_to_do(server, hub, directory):
    nobody = Hub(endpoint=server.url, cache_dir=hub.cache, token=False, timeout=2.0)
    with pytest.raises(HubError, match="log in with `hf auth login`"):
        push_to_hub(directory, NAME, hub=nobody)
    gone = Hub(endpoint="http://127.0.0.1:9", token="hf_test")
    with pytest.raises(HubError, match="cannot be reached"):
        push_to_hub(directory, NAME, hub=gone)


def test_the_commands_push_and_pull(server, hub, directory, tmp_path, capsys):
    options = ["--private", "--license", "mit", "--language", "en", "de"]
    assert main(["push", str(directory), NAME, *options]) == 0
    assert capsys.readouterr().out.startswith(f"{server.url}/{NAME} at ")
    assert main(["pull", NAME]) == 0
    cached = Path(capsys.readouterr().out.strip())
    assert cached.is_relative_to(hub.cache)
    (cached / "onnx").mkdir()
    (cached / "pytorch_model.bin").write_bytes(b"of another program")
    assert main(["pull", NAME, "--revision", cached.name, "--output", str(tmp_path / "copy")]) == 0
    capsys.readouterr()
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {
        "config.json",
        "tokenizer.model",
        "README.md",
        "heads.json",
        "model.safetensors",
    }
    assert not any(path.is_symlink() for path in (tmp_path / "copy").iterdir())
    assert load_translator(tmp_path / "copy").name == "copy"
    assert main(["pull", NAME, "--output", str(tmp_path / "copy")]) == 2
    assert "already exists" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["pull", NAME, "--output", str(tmp_path / "file" / "copy")]) == 2
    assert "cannot be copied to" in capsys.readouterr().err
    assert main(["pull", "user/nothing"]) == 2
    assert main(["translate", "--model", NAME, "--revision", "v9", "one"]) == 2
    assert "has no revision 'v9'" in capsys.readouterr().err
    assert main(["heads", "--model", NAME, "--data", "x.tsv"]) == 2
    assert "There is no directory user/own to write into" in capsys.readouterr().err


def test_the_environment_of_huggingface_hub_is_followed(server, tmp_path):
    server.add("user/tiny", write_marian(tmp_path / "model"))
    environment = {**os.environ, "HF_ENDPOINT": server.url, "HF_HUB_CACHE": str(tmp_path / "cache")}
    environment |= {"HF_TOKEN": "hf_test"}
    command = [sys.executable, "-m", "transformer", "translate", "--model", "user/tiny", "the cat sat"]

    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert cached("user/tiny", None, Hub(cache_dir=tmp_path / "cache")) is not None
