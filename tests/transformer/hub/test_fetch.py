"""Models by their names on the Hub: fetched by the real client from a Hub that runs here."""

import os
import shutil
from pathlib import Path

import pytest
import torch
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


def test_a_name_opens_the_same_model_as_its_directory(server, hub, original):
    here, there = load_translator(original), load_translator(NAME)
    first, second = here.translate("the cat sat"), there.translate("the cat sat")
    assert first.log_probs == second.log_probs
    assert first.target_tokens == second.target_tokens


@pytest.mark.parametrize(
    "pasted",
    [
        *("https://huggingface.co/{}", "huggingface.co/{}", "https://hf.co/{}?library=transformers", "{}/"),
        *("{}/tree/main", " https://huggingface.co/{}/blob/main/config.json "),
    ],
)
def test_what_is_copied_from_a_model_s_page_opens_it(server, hub, pasted):
    assert load_translator(pasted.format(NAME)).translate("the").model.startswith(NAME)


def test_a_model_says_its_commit_in_every_translation(server, hub):
    commit = server.repositories[NAME].branches["main"]
    translator = load_translator(NAME)
    assert translator.name == f"{NAME}@{commit[:8]}"
    assert translator.translate("the cat").model == translator.name


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
    assert {path.name for path in snapshot.directory.iterdir()} == {
        *SMALL,
        "generation_config.json",
        "model.safetensors",
    }
    large = [path for method, path in server.requests if method == "GET" and path.startswith("/storage/")]
    assert sorted(path.rpartition("/")[2] for path in large) == [
        "model.safetensors",
        "source.spm",
        "target.spm",
    ]
    asked = server.asked("GET", "/resolve/")
    load_translator(NAME)
    assert (server.asked("GET", "/storage/"), server.asked("GET", "/resolve/")) == (3, asked)


@pytest.mark.parametrize("options", [{"file": "bin"}, {"shards": True}, {"file": "bin", "shards": True}])
def test_pytorch_files_and_shards_are_fetched_too(server, hub, tmp_path, options):
    server.add("user/other", write_marian(tmp_path / "other", **options))
    assert load_translator("user/other").translate("the cat", capture=False).text is not None


def test_a_revision_is_a_branch_a_tag_or_a_commit(server, hub):
    first = server.repositories[NAME].branches["main"]
    server.repositories[NAME].branches["v1.0"] = first
    second = change(server, README__md=b"# Newer")
    assert find(NAME).commit == second
    assert find(NAME, "v1.0").commit == first
    assert find(NAME, first).commit == first
    assert load_translator(NAME, revision="v1.0").card == ""
    assert load_translator(NAME).card == "# Newer"
    asked = len(server.requests)
    assert find(NAME, first).directory.name == first
    assert len(server.requests) == asked, "a commit that is in the cache needs no network"


def test_a_new_state_fetches_what_has_changed_only(server, hub):
    find(NAME)
    change(server, README__md=b"# Newer")
    before = server.asked("GET", "/storage/")
    find(NAME)
    assert server.asked("GET", "/storage/") == before


def test_without_a_network_cached_models_open_and_others_say_so(server, hub, naps):
    snapshot = find(NAME)
    gone = Hub(endpoint="http://127.0.0.1:9", cache_dir=hub.cache, token=False)
    assert find(NAME, None, gone) == snapshot
    assert [each.name for each in cached_models(gone)] == [NAME]
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


def test_progress_counts_all_bytes_and_ends_with_them(server, hub):
    told = []
    offer = look(NAME)
    fetch(offer, lambda done, total: told.append((done, total)))
    assert {total for _, total in told} == {offer.nbytes}
    assert told == sorted(told)
    assert told[-1][0] == offer.nbytes


def test_an_offer_says_size_and_memory_before_anything_large_is_fetched(server, hub, original):
    offer = look(NAME)
    assert offer.nbytes == sum(path.stat().st_size for path in original.iterdir())
    weights = sum(each.numel() for each in load_translator(original).model.parameters())
    assert offer.loaded_nbytes == pytest.approx(4 * weights, rel=0.1)
    assert server.asked("GET", "/storage/") == 0


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
        ("model.safetensors", "oversized", "sends more than the .* that it announced for model.safetensors"),
        ("vocab.json", "oversized", "sends more than the .* that it announced for vocab.json"),
        ("api", "slow", "cannot be reached"),
        ("api", "error", "answers with an error .503"),
        ("api", "nonsense", "is not the Hub"),
        ("api", "wrong", "is not the Hub"),
    ],
)
def test_what_goes_wrong_is_one_sentence_and_the_older_state_still_opens(server, hub, file, fault, message):
    known = find(NAME)
    newer = {"model__safetensors": b"", "vocab__json": b""}
    files = read_files(known.directory)
    newer = {name: files[name.replace("__", ".")] + b" " * 100_000 for name in newer}
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


def test_large_files_come_over_http_where_the_hub_offers_xet_too(server, hub):
    find(NAME)
    assert server.asked("GET", "/storage/") == 3
    assert server.asked("GET", "no-xet-here") == 0


def test_a_line_that_breaks_once_is_taken_up_where_it_broke(server, hub):
    server.faults["model.safetensors"] = "cut once"
    find(NAME)
    (asked,) = server.ranges
    assert int(asked.removeprefix("bytes=").removesuffix("-")) > 0


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


def test_a_revision_that_is_not_there_is_named(server, hub):
    refused("user/tiny has no revision 'v9'", find, NAME, "v9")


def test_a_renamed_model_opens_and_says_its_new_name(server, hub):
    server.repositories["old/name"] = type(server.repositories[NAME])(moved_to=NAME)
    offer = look("old/name")
    assert (offer.name, offer.present_name) == ("old/name", NAME)
    assert load_translator("old/name").name == f"old/name@{offer.commit[:8]}"
    strict = Hub(endpoint=hub.endpoint, cache_dir=hub.cache, token=False, allowed=("old/*",))
    refused("user/tiny may not be opened here", look, "old/name", None, strict)


def test_other_models_in_the_cache_are_left_alone(server, hub, original, tmp_path):
    for name, files in {
        "user/text": {
            "config.json": b'{"model_type": "gpt2"}',
            "model.safetensors": b"x",
            "vocab.json": b"{}",
        },
        "user/half": {"config.json": (original / "config.json").read_bytes()},
    }.items():
        folder = hub.folder(name)
        (folder / "refs").mkdir(parents=True)
        (folder / "refs" / "main").write_text("0" * 40)
        (folder / "snapshots" / ("0" * 40)).mkdir(parents=True)
        for file, content in files.items():
            (folder / "snapshots" / ("0" * 40) / file).write_bytes(content)
    (hub.folder("user/odd") / "refs").mkdir(parents=True)
    (hub.folder("user/odd") / "refs" / "main").write_text("../../etc")
    assert cached_models() == []
    find(NAME)
    assert [each.name for each in cached_models()] == [NAME]


def test_an_unreachable_hub_is_an_error_of_its_own(hub):
    with pytest.raises(UnreachableError):
        look(NAME, None, Hub(endpoint="http://127.0.0.1:9", cache_dir=hub.cache, token=False))
    assert torch.is_grad_enabled()
