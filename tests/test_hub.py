"""Models by their names on the Hub: fetched by the real client from a Hub that runs here."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
import torch
from hub_server import git_hash, read_files, running_hub
from huggingface_hub import constants
from marian_models import write_marian

from transformer import load_translator
from transformer.checkpoint import CheckpointError, save_checkpoint
from transformer.hub import cached, cached_models, fetch, find, look
from transformer.hub_files import needed
from transformer.hub_settings import Hub, HubError, StoppedError, UnreachableError, is_name

NAME = "user/tiny"
MONSTER = b'{"model_type": "marian", "encoder_layers": 1000000000}'
SMALL = {"config.json", "source.spm", "target.spm", "vocab.json", "tokenizer_config.json"}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return write_marian(tmp_path_factory.mktemp("original"))


@pytest.fixture
def server(original):
    with running_hub() as server:
        server.add(NAME, original)
        yield server


@pytest.fixture
def hub(server, tmp_path, monkeypatch):
    """The local Hub, which is also the one of the environment; nothing waits longer than needed."""
    hub = Hub(endpoint=server.url, cache_dir=tmp_path / "cache", token=False, timeout=2.0)
    monkeypatch.setattr(Hub, "from_environment", classmethod(lambda cls: hub))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.2)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 2**14)
    return hub


def change(server, **files):
    """A new state of the model; None takes a file out."""
    before = server.repositories[NAME].commits[server.repositories[NAME].branches["main"]]
    after = {name.replace("__", "."): content for name, content in files.items()}
    merged = {name: content for name, content in (before | after).items() if content is not None}
    return server.repositories[NAME].commit(merged)


def refused(message, action, *arguments):
    """One sentence, short, about the right thing."""
    with pytest.raises(CheckpointError, match=message) as caught:
        action(*arguments)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 300


def test_a_name_opens_the_same_model_as_its_directory(server, hub, original):
    here, there = load_translator(original), load_translator(NAME)
    first, second = here.translate("the cat sat"), there.translate("the cat sat")
    assert first.log_probs == second.log_probs
    assert first.target_tokens == second.target_tokens


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


def test_without_a_network_cached_models_open_and_others_say_so(server, hub, tmp_path):
    snapshot = find(NAME)
    gone = Hub(endpoint="http://127.0.0.1:9", cache_dir=hub.cache, token=False)
    assert find(NAME, None, gone) == snapshot
    assert [each.name for each in cached_models(gone)] == [NAME]
    started = time.monotonic()
    refused("cannot be reached .*, and user/other is not in the cache at", find, "user/other", None, gone)
    assert time.monotonic() - started < 2


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
    with pytest.raises(CheckpointError, match="is no name on the Hub, so it has no revision 'v1'"):
        load_translator(original, revision="v1")
    refused(
        "no model directory user/other, and as a name on the Hub: There is no", load_translator, "user/other"
    )
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
    assert offer.memory == pytest.approx(4 * weights, rel=0.1)
    assert server.asked("GET", "/storage/") == 0


def test_a_stopped_download_keeps_what_is_complete_and_goes_on_later(server, hub):
    def stop(done, total):
        if done > 300_000:
            raise StoppedError("Stopped.")

    offer = look(NAME)
    with pytest.raises(StoppedError):
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
        ("model.safetensors", "damaged", "model.safetensors of user/tiny is not what its hash says"),
        ("vocab.json", "damaged", "vocab.json of user/tiny is not what its hash says"),
        ("model.safetensors", "missing", "lacks a file on the Hub that it lists"),
        ("model.safetensors", "oversized", "sends more than the .* that model.safetensors has"),
        ("vocab.json", "oversized", "sends more than the .* that vocab.json has"),
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
    refused("model.safetensors of user/tiny is not what its hash says", load_translator, path.parent)
    assert not path.exists()
    assert load_translator(NAME).translate("the cat", capture=False)


def test_who_may_not_read_a_model_is_told_what_to_do(server, hub):
    server.repositories[NAME].gated = True
    refused(rf"accepted its terms only: accept them at {hub.address}/{NAME}", find, NAME)
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


def test_names_of_the_hub_are_told_from_paths():
    assert all(map(is_name, ("Helsinki-NLP/opus-mt-en-de", "user/a.b_c-1")))
    wrong = ("opus", "a/b/c", "../x", "a/..", "/a/b", "a/b.git", "a--b/c", "a/b--c", ".a/b", "a/-b")
    assert not any(map(is_name, (*wrong, "", "a/b\n", "a b/c", "a/" + "b" * 100)))


@pytest.mark.parametrize("name", ["../../etc/passwd", "user/../other", "a/b/c", "user/..", "x"])
def test_no_path_is_a_name(server, hub, name):
    refused("no name of a model on the Hub", find, name)
    assert not hub.cache.exists()


@pytest.mark.parametrize("revision", ["../../x", "a/../b", "-x", "a//b", "/etc", "a" * 300, "x/"])
def test_no_path_is_a_revision(server, hub, revision):
    refused("is no revision", find, NAME, revision)
    refused("is no revision", cached, NAME, revision)
    assert server.requests == []


def test_a_model_that_is_too_large_is_refused_before_it_is_downloaded(server, hub):
    server.sizes["model.safetensors"] = 3_000_000_000
    refused("user/tiny has 3.0 GB; at most 1.5 GB are downloaded .TRANSFORMER_HUB_GB", find, NAME)
    server.sizes = {"vocab.json": 20_000_000}
    refused("its vocab.json has 20.0 MB", find, NAME)
    server.sizes = {"model.safetensors": -1}
    refused("is not the Hub", find, NAME)
    assert server.asked("GET", "/resolve/") + server.asked("GET", "/storage/") == 0


def test_a_model_that_does_not_fit_on_the_disk_is_refused(server, hub, monkeypatch):
    offer = look(NAME)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1))
    refused("needs .* on the disk; 1 bytes are free", fetch, offer)


def test_the_environment_sets_the_limits(monkeypatch):
    monkeypatch.setenv("TRANSFORMER_HUB_GB", "0.25")
    monkeypatch.setenv("TRANSFORMER_HUB_ALLOWED", "Helsinki-NLP/*, user/own")
    hub = Hub.from_environment()
    assert (hub.most_bytes, hub.allowed) == (250_000_000, ("Helsinki-NLP/*", "user/own"))
    for wrong in ("much", "-1", "nan", "1e400"):
        monkeypatch.setenv("TRANSFORMER_HUB_GB", wrong)
        with pytest.raises(HubError, match=f"'{wrong}'; it must be a number of gigabytes"):
            Hub.from_environment()
    monkeypatch.delenv("TRANSFORMER_HUB_GB")
    monkeypatch.delenv("TRANSFORMER_HUB_ALLOWED")
    assert Hub.from_environment() == Hub()


def test_only_allowed_names_are_asked_for_or_opened(server, hub):
    find(NAME)
    asked = len(server.requests)
    for allowed in ((), ("Helsinki-NLP/*", "user/other")):
        strict = Hub(endpoint=hub.endpoint, cache_dir=hub.cache, token=False, allowed=allowed)
        refused("may not be opened here; TRANSFORMER_HUB_ALLOWED allows", look, NAME, None, strict)
        refused("may not be opened here", find, NAME, None, strict)
        assert cached_models(strict) == []
    assert len(server.requests) == asked
    open_to_user = Hub(endpoint=hub.endpoint, cache_dir=hub.cache, token=False, allowed=("user/*",))
    assert find(NAME, None, open_to_user).name == NAME


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config__json": None}, "has no config.json"),
        ({"source__spm": None}, "has no tokenizer.model"),
        ({"model__safetensors": None}, "has no model.safetensors or pytorch_model.bin"),
        ({"vocab__json": None}, "has no vocab.json"),
        (
            {"config__json": MONSTER},
            "n_encoder_layers is 1000000000",
        ),
        ({"config__json": b'{"model_type": "bart"}'}, "a bart model of another library"),
        ({"config__json": b"[" * 100_000}, "is not valid JSON"),
    ],
    ids=range(7),
)
def test_a_model_of_another_kind_is_refused_before_its_weights_are_fetched(server, hub, changes, message):
    change(server, **changes)
    refused(message, find, NAME)
    assert server.asked("GET", "/storage/") == 0


def test_a_hostile_listing_names_no_file_outside(server, hub):
    change(server, **{"../../../x": b"x", "/etc/x": b"x", "model-00001-of-00002__safetensors/../x": b"x"})
    directory = find(NAME).directory
    assert {path.resolve().parent.name for path in directory.iterdir()} == {"blobs"}
    index = {"weight_map": {"a": "../../secret.bin"}}
    change(
        server,
        model__safetensors=None,
        **{
            "pytorch_model.bin.index__json": json.dumps(index).encode(),
            "pytorch_model-00001-of-00001__bin": b"x",
        },
    )
    refused("names '../../secret.bin', which is no weight file beside it", load_translator, NAME)


def test_a_snapshot_that_points_out_of_its_cache_is_not_opened(server, hub, tmp_path):
    path = find(NAME).directory / "vocab.json"
    digest = git_hash(path.read_bytes())
    (tmp_path / digest).write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(tmp_path / digest)
    refused("vocab.json of user/tiny lies outside the cache of its model", load_translator, path.parent)


def test_errors_of_a_model_s_files_name_the_model_and_not_the_server_s_folders(server, hub):
    change(server, vocab__json=b'{"a": -1}')
    with pytest.raises(HubError, match=r"user/tiny@.{8}/vocab\.json has numbers that are not") as caught:
        load_translator(NAME)
    assert str(hub.cache) not in str(caught.value)


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


@pytest.mark.parametrize(
    "heads",
    [
        {"default": {"cross": [10**9, 0]}},
        {"default": {"cross": [-1, 0]}},
        {"default": {"cross": "x"}},
        {"default": {"sideways": [0, 0]}},
        {"default": []},
        {"heads": {"cross": [[{"aer": 0.5}]]}},
        {"heads": {"cross": "x"}},
        {"heads": {"encoder": [[{"aer": "<script>"}] * 4] * 2}},
    ],
    ids=range(8),
)
def test_statistics_of_heads_that_the_model_has_not_are_refused(server, hub, heads):
    change(server, heads__json=json.dumps(heads).encode())
    refused("heads.json is damaged or describes the heads of another model", load_translator, NAME)


def test_a_vocabulary_that_is_a_bomb_is_refused_by_its_size(tmp_path, translator):
    save_checkpoint(tmp_path, translator.config, translator.model.state_dict(), translator.tokenizer)
    os.truncate(tmp_path / "tokenizer.model", 2**30)
    refused("tokenizer.model is larger than 16 MiB", load_translator, tmp_path)


def test_a_card_of_any_length_is_read_up_to_its_limit(server, hub):
    change(server, README__md=b"---\na: " + b"[" * 2_000_000)
    assert len(load_translator(NAME).card) == 2**18


def test_safetensors_go_before_pytorch_and_one_file_before_shards():
    marian = ["config.json", "source.spm", "target.spm", "vocab.json"]
    shards = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    shards.insert(0, "model.safetensors.index.json")
    chosen = needed([*marian, "pytorch_model.bin", *shards, "flax_model.msgpack"], "x/y")
    assert chosen == [*marian, *shards]
    assert needed([*marian, "pytorch_model.bin"], "x/y")[-1] == "pytorch_model.bin"
    with pytest.raises(HubError, match=r"has no model\.safetensors"):
        needed([*marian, "model.safetensors.index.json"], "x/y")


def test_an_unreachable_hub_is_an_error_of_its_own(hub):
    with pytest.raises(UnreachableError):
        look(NAME, None, Hub(endpoint="http://127.0.0.1:9", cache_dir=hub.cache, token=False))
    assert torch.is_grad_enabled()
