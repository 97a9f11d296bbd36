"""What may not come from the Hub: paths for names, too much, models of another kind, hostile files."""

import json
import shutil

import pytest
from hub_cases import NAME, change, refused
from hub_server import git_hash

from transformer import load_translator
from transformer.hub.fetch import fetch, find, look
from transformer.hub.files import cached, cached_models
from transformer.hub.settings import Hub, HubError, is_name

MONSTER = b'{"model_type": "marian", "encoder_layers": 1000000000}'


def test_names_of_the_hub_are_told_from_paths():
    assert all(map(is_name, ("Helsinki-NLP/opus-mt-en-de", "user/a.b_c-1")))
    wrong = ("opus", "a/b/c", "../x", "a/..", "/a/b", "a/b.git", "a--b/c", "a/b--c", ".a/b", "a/-b")
    assert not any(map(is_name, (*wrong, "", "a/b\n", "a b/c", "a/" + "b" * 100)))


def test_no_path_is_a_name_or_a_revision(server, hub):
    for name in ("../../etc/passwd", "user/../other", "x"):
        refused("not a model name on the Hub", find, name)
    for revision in ("../../x", "a/../b", "-x", "a//b", "/etc", "a" * 300, "x/"):
        refused("is not a revision", find, NAME, revision)
        refused("is not a revision", cached, NAME, revision)
    assert server.requests == []
    assert not hub.cache.exists()


def test_a_model_that_is_too_large_is_refused_before_it_is_downloaded(server, hub):
    server.sizes["model.safetensors"] = 3_000_000_000
    refused("user/tiny has 3.0 GB, but downloads are limited to 1.5 GB; TRANSFORMER_HUB_GB", find, NAME)
    server.sizes = {"vocab.json": 20_000_000}
    refused("tiny: vocab.json has 20.0 MB", find, NAME)
    server.sizes = {"model.safetensors": -1}
    refused("is not the Hub", find, NAME)
    assert server.asked("GET", "/resolve/") + server.asked("GET", "/storage/") == 0


def test_a_model_that_does_not_fit_on_the_disk_is_refused(server, hub, monkeypatch):
    offer = look(NAME)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1))
    refused("needs .* on the disk, but only 1 bytes is free", fetch, offer)


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
        ({"config__json": MONSTER}, "n_encoder_layers is 1000000000"),
        ({"config__json": b'{"model_type": "pegasus"}'}, "a pegasus model of another library"),
    ],
    ids=range(5),
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
    files = {"pytorch_model.bin.index__json": json.dumps(index).encode()}
    change(server, model__safetensors=None, **files, **{"pytorch_model-00001-of-00001__bin": b"x"})
    refused("names '../../secret.bin', which is not a weight file beside it", load_translator, NAME)


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
