"""Models by their names on the Hub: fetched by the real client from a Hub that runs here."""

import os
import shutil
from pathlib import Path

import pytest
from hub_cases import NAME, change, refused
from hub_server import read_files
from huggingface_hub import constants
from marian_models import write_marian

from transformer import load_translator
from transformer.hub.fetch import fetch, find, look
from transformer.hub.files import cached, cached_models
from transformer.hub.settings import Hub, HubError, UnreachableError
from transformer.storage.directory import save_checkpoint
from transformer.storage.files import CheckpointError

SMALL = {"config.json", "source.spm", "target.spm", "vocab.json", "tokenizer_config.json"}


@pytest.mark.parametrize("pasted", ["{}", "https://hf.co/{}?library=transformers", "{}/", "{}/tree/main"])
def test_a_name_as_it_is_copied_opens_the_model_and_says_its_commit(server, hub, original, pasted):
    translator = load_translator(pasted.format(NAME))
    assert translator.name == f"{NAME}@{server.repositories[NAME].branches['main'][:8]}"
    here, there = (each.translate("the cat sat") for each in (load_translator(original), translator))
    assert (there.log_probs, there.target_tokens) == (here.log_probs, here.target_tokens)
    assert there.model == translator.name


def test_a_model_of_this_package_comes_back_from_the_hub(server, hub, translator, tmp_path):
    state, heads = translator.model.state_dict(), {"default": {"cross": [1, 1]}}
    save_checkpoint(
        tmp_path / "own", translator.config, state, translator.tokenizer, card="# Hello", heads=heads
    )
    server.add("user/own", tmp_path / "own")
    loaded = load_translator("user/own")
    assert (loaded.heads, loaded.card) == (heads, "# Hello")
    text = loaded.translate("one two three").text
    assert text == load_translator(tmp_path / "own").translate("one two three").text


def test_only_the_needed_files_are_fetched_and_each_once(server, hub):
    change(server, tf_model__h5=b"x" * 1000, pytorch_model__bin=b"y" * 1000, run__py=b"import os")
    snapshot = find(NAME)
    names = {*SMALL, "generation_config.json", "model.safetensors"}
    assert {path.name for path in snapshot.directory.iterdir()} == names
    large = [path for method, path in server.requests if method == "GET" and path.startswith("/storage/")]
    names = ["model.safetensors", "source.spm", "target.spm"]
    assert sorted(path.rpartition("/")[2] for path in large) == names
    asked = server.asked("GET", "/resolve/")
    load_translator(NAME)
    assert (server.asked("GET", "/storage/"), server.asked("GET", "/resolve/")) == (3, asked)


@pytest.mark.parametrize("file", ["safetensors", "bin"])
def test_pytorch_files_and_shards_are_fetched_too(server, hub, tmp_path, file):
    server.add("user/other", write_marian(tmp_path / "other", file=file, shards=True))
    assert load_translator("user/other").translate("the cat", capture=False).text is not None


def test_a_revision_is_a_branch_a_tag_or_a_commit(server, hub):
    first = server.repositories[NAME].branches["main"]
    server.repositories[NAME].branches["v1.0"] = first
    find(NAME)
    before, second = server.asked("GET", "/storage/"), change(server, README__md=b"# Newer")
    assert find(NAME).commit == second
    assert server.asked("GET", "/storage/") == before, "only what has changed is fetched"
    assert find(NAME, "v1.0").commit == first
    assert find(NAME, first).commit == first
    assert load_translator(NAME, revision="v1.0").card == ""
    assert load_translator(NAME).card == "# Newer"
    asked = len(server.requests)
    assert find(NAME, first).directory.name == first
    assert len(server.requests) == asked, "a commit that is in the cache needs no network"
    refused("user/tiny has no revision 'v9'", find, NAME, "v9")


def test_without_a_network_cached_models_open_and_others_say_so(server, hub, naps):
    snapshot = find(NAME)
    gone = Hub(endpoint="http://127.0.0.1:9", cache_dir=hub.cache, token=False)
    assert find(NAME, None, gone) == snapshot
    assert [each.name for each in cached_models(gone)] == [NAME]
    for name, head in (("user/half", "0" * 40), ("user/odd", "../../etc")):  # which are left alone
        (hub.folder(name) / "refs").mkdir(parents=True)
        (hub.folder(name) / "refs" / "main").write_text(head)
        (folder := hub.folder(name) / "snapshots" / ("0" * 40)).mkdir(parents=True)
        (folder / "config.json").write_bytes((snapshot.directory / "config.json").read_bytes())
    assert [each.name for each in cached_models(gone)] == [NAME]
    with pytest.raises(UnreachableError):
        look(NAME, None, gone)
    refused("cannot be reached .*, and user/other is not in the cache at", find, "user/other", None, gone)
    assert sum(naps) < 2


def test_offline_mode_is_huggingface_hub_s_own(server, hub, monkeypatch):
    snapshot = find(NAME)
    asked = len(server.requests)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert find(NAME) == snapshot
    assert load_translator(NAME).name == snapshot.title
    refused("switched off .*, and user/other is not in the cache", find, "user/other")
    refused("switched off .*, and user/tiny at 'v1' is not in the cache", find, NAME, "v1")
    assert len(server.requests) == asked


def test_a_directory_goes_before_a_name(server, hub, original, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(original, tmp_path / "user" / "tiny")
    assert load_translator(NAME).name == "tiny"
    assert server.requests == []
    with pytest.raises(CheckpointError, match="is not a name on the Hub, so it has no revision 'v1'"):
        load_translator(original, revision="v1")
    refused("no model directory user/other. As a name on the Hub: There is no", load_translator, "user/other")
    refused("There is no model directory", load_translator, Path("nowhere/model"))


def test_an_offer_says_size_and_memory_before_anything_large_is_fetched(server, hub, original):
    offer, told = look(NAME), []
    assert offer.nbytes == sum(path.stat().st_size for path in original.iterdir())
    weights = sum(each.numel() for each in load_translator(original).model.parameters())
    assert offer.loaded_nbytes == pytest.approx(4 * weights, rel=0.1)
    assert server.asked("GET", "/storage/") == 0
    fetch(offer, lambda done, total: told.append((done, total)))
    assert {total for _, total in told} == {offer.nbytes}
    assert told == sorted(told)
    assert told[-1][0] == offer.nbytes


def test_a_stopped_download_keeps_what_is_complete_and_goes_on_later(server, hub):
    class LeftError(Exception):
        """What somebody who left raises."""

    def stop(done, total):
        if done > 300_000:
            raise LeftError

    offer = look(NAME)
    with pytest.raises(LeftError):
        fetch(offer, stop)
    assert cached(NAME) is None
    assert not [*hub.cache.rglob("*.incomplete")]
    fetch(offer)
    assert server.asked("GET", "/storage/", "source.spm") == 1
    assert cached(NAME).commit == offer.commit


@pytest.mark.parametrize(
    ("file", "fault", "message"),
    [
        ("model.safetensors", "cut", "cannot be reached|cut off"),
        ("model.safetensors", "slow", "cannot be reached"),
        ("model.safetensors", "damaged", "model.safetensors of user/tiny does not match its hash"),
        ("vocab.json", "damaged", "vocab.json of user/tiny does not match its hash"),
        ("model.safetensors", "missing", "lists a file that the Hub does not have"),
        ("vocab.json", "oversized", "sends more than the .* that it announced for vocab.json"),
        ("api", "slow", "cannot be reached"),
        ("api", "error", "answers with an error .503"),
        ("api", "nonsense", "is not the Hub"),
        ("api", "wrong", "is not the Hub"),
    ],
)
def test_what_goes_wrong_is_one_sentence_and_the_older_state_still_opens(server, hub, file, fault, message):
    known = find(NAME)
    files = read_files(known.directory)
    names = {"model__safetensors": "model.safetensors", "vocab__json": "vocab.json"}
    newer = {name: files[file] + b" " * 100_000 for name, file in names.items()}
    commit = change(server, **newer)
    server.faults[file] = fault
    other = Hub(endpoint=hub.endpoint, cache_dir=hub.cache.parent / "empty", token=False, timeout=0.2)
    refused(message, find, NAME, None, other)
    assert cached(NAME, None, other) is None
    try:
        assert find(NAME).commit == known.commit
    except HubError:
        assert cached(NAME).commit == known.commit
    assert not [*other.cache.rglob("*.incomplete")]
    server.faults.clear()
    assert find(NAME, None, other).commit == commit


def test_a_file_that_was_damaged_in_the_cache_is_found_and_fetched_again(server, hub):
    path = find(NAME).directory / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    os.truncate(path.resolve(), 0)
    path.resolve().write_bytes(content)
    refused("model.safetensors of user/tiny does not match its hash", load_translator, path.parent)
    assert not path.exists()
    assert load_translator(NAME).translate("the cat", capture=False)


def test_who_may_not_read_a_model_is_told_what_to_do(server, hub):
    server.repositories[NAME].gated = True
    refused(rf"only to users who accept its terms: accept them at {hub.address}/{NAME}", find, NAME)
    server.repositories[NAME].gated, server.repositories[NAME].private = False, True
    refused("no model user/tiny on the Hub, or it is private", find, NAME)
    refused("no model user/nothing on the Hub", find, "user/nothing")
    allowed = Hub(endpoint=hub.endpoint, cache_dir=hub.cache, token="hf_token", timeout=2.0)
    assert find(NAME, None, allowed).name == NAME


def test_a_renamed_model_opens_and_says_its_new_name(server, hub):
    server.repositories["old/name"] = type(server.repositories[NAME])(moved_to=NAME)
    offer = look("old/name")
    assert (offer.name, offer.present_name) == ("old/name", NAME)
    assert load_translator("old/name").name == f"old/name@{offer.commit[:8]}"
    strict = Hub(endpoint=hub.endpoint, cache_dir=hub.cache, token=False, allowed=("old/*",))
    refused("user/tiny may not be opened here", look, "old/name", None, strict)
