"""Models by their names on the Hub, fetched by the real client from one that runs here; what may
not come."""

import json
import os
import shutil
from pathlib import Path

import pytest
from decoder_models import write_decoder
from hub_cases import NAME, change, refused
from hub_server import git_hash, read_files
from huggingface_hub import constants
from marian_models import write_marian

from transformer import load_language_model, load_translator
from transformer.__main__ import main
from transformer.hub.fetch import fetch, find, look
from transformer.hub.files import cached, cached_models
from transformer.hub.settings import Hub, HubError, UnreachableError, is_name, pasted_name
from transformer.storage.description import parameter_count
from transformer.storage.directory import save_checkpoint
from transformer.storage.files import CheckpointError

SMALL = {"config.json", "source.spm", "target.spm", "vocab.json", "tokenizer_config.json"}


@pytest.mark.parametrize(
    "pasted", ["{}", "https://hf.co/{}?library=transformers", "{}/", "{}/tree/main"]
)
def test_a_name_as_it_is_copied_opens_the_model_and_says_its_commit(server, hub, original, pasted):
    translator = load_translator(pasted.format(NAME))
    assert translator.name == f"{NAME}@{server.repositories[NAME].branches['main'][:8]}"
    here, there = (
        each.translate("the cat sat") for each in (load_translator(original), translator)
    )
    assert (there.log_probs, there.target_tokens) == (here.log_probs, here.target_tokens)
    assert there.model == translator.name


def test_a_model_of_this_package_comes_back_from_the_hub(server, hub, translator, tmp_path):
    state = translator.model.state_dict()
    heads = {"default": {"cross": [1, 1]}}
    save_checkpoint(
        tmp_path / "own",
        translator.config,
        state,
        translator.tokenizer,
        card="# Hello",
        heads=heads,
    )
    server.add("user/own", tmp_path / "own")
    loaded = load_translator("user/own")
    assert (loaded.heads, loaded.card) == (heads, "# Hello")
    text = loaded.translate("one two three").text
    assert text == load_translator(tmp_path / "own").translate("one two three").text


@pytest.mark.parametrize("shard_size", ["1GB", "40KB"], ids=["whole", "in shards"])
def test_a_decoder_opens_by_its_name_with_what_it_needs(server, hub, tmp_path, shard_size):
    write_decoder(tmp_path / "lm", "Llama, groups of three", shard_size=shard_size)
    (tmp_path / "lm" / "chat_template.jinja").write_text("{{ messages[0].content }}")
    (tmp_path / "lm" / "run.py").write_text("import os")
    server.add("user/lm", tmp_path / "lm")
    ours = load_language_model("user/lm")
    here = load_language_model(tmp_path / "lm")
    assert ours.chat_template == here.chat_template != ""
    run = ours.generate("the old house", max_length=12)
    assert run.log_probs == here.generate("the old house", max_length=12).log_probs
    assert not (cached("user/lm").directory / "run.py").exists()


def test_a_repository_of_gguf_files_says_how_they_open(server, hub, tmp_path):
    (tmp_path / "lm").mkdir()
    (tmp_path / "lm" / "model.Q4_1.gguf").write_bytes(b"GGUF")
    server.add("user/lm", tmp_path / "lm")
    refused("download one of its GGUF files", load_language_model, "user/lm")


def test_only_the_needed_files_are_fetched_and_each_once(server, hub):
    change(server, tf_model__h5=b"x" * 1000, pytorch_model__bin=b"y" * 1000, run__py=b"import os")
    snapshot = find(NAME)
    names = {*SMALL, "generation_config.json", "model.safetensors"}
    assert {path.name for path in snapshot.directory.iterdir()} == names
    large = [
        path for method, path in server.requests if method == "GET" and path.startswith("/storage/")
    ]
    names = ["model.safetensors", "source.spm", "target.spm"]
    assert sorted(path.rpartition("/")[2] for path in large) == names
    asked = server.asked("GET", "/resolve/")
    load_translator(NAME)
    assert (server.asked("GET", "/storage/"), server.asked("GET", "/resolve/")) == (3, asked)


def test_pull_prints_where_a_model_is_or_copies_what_is_needed_of_it(hub, tmp_path, capsys):
    assert main(["pull", NAME]) == 0
    place = Path(capsys.readouterr().out.strip())
    (place / "more.txt").write_text("of another program")
    assert main(["pull", NAME, "--output", str(tmp_path / "new" / "own")]) == 0
    printed = capsys.readouterr()
    assert (printed.out, NAME in printed.err) == (f"{tmp_path}/new/own\n", True)
    copies = read_files(tmp_path / "new" / "own")
    files = read_files(place)
    assert copies == {name: content for name, content in files.items() if name != "more.txt"}
    assert main(["pull", NAME, "--output", str(place)]) == 2
    assert (
        capsys.readouterr().err
        == f"{place} already exists and is not an empty directory; choose a new one.\n"
    )


@pytest.mark.parametrize("file", ["safetensors", "bin"])
def test_pytorch_files_and_shards_are_fetched_too(server, hub, tmp_path, file):
    server.add("user/other", write_marian(tmp_path / "other", file=file, shards=True))
    assert load_translator("user/other").translate("the cat", capture=False).text is not None


def test_a_revision_is_a_branch_a_tag_or_a_commit(server, hub):
    first = server.repositories[NAME].branches["main"]
    server.repositories[NAME].branches["v1.0"] = first
    find(NAME)
    before = server.asked("GET", "/storage/")
    second = change(server, README__md=b"# Newer")
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
    assert [model.name for model in cached_models(gone)] == [NAME]
    for name, head in (("user/half", "0" * 40), ("user/odd", "../../etc")):  # which are left alone
        (hub.folder(name) / "refs").mkdir(parents=True)
        (hub.folder(name) / "refs" / "main").write_text(head)
        (folder := hub.folder(name) / "snapshots" / ("0" * 40)).mkdir(parents=True)
        (folder / "config.json").write_bytes((snapshot.directory / "config.json").read_bytes())
    assert [each.name for each in cached_models(gone)] == [NAME]
    with pytest.raises(UnreachableError):
        look(NAME, None, gone)
    refused(
        "cannot be reached .*, and user/other is not in the cache at",
        find,
        "user/other",
        None,
        gone,
    )
    assert sum(naps) < 2


@pytest.mark.parametrize("fault", ["nonsense", "wrong", "407", "403 page", "error"])
def test_a_network_that_answers_in_place_of_the_hub_opens_the_cache_with_a_note(
    server, hub, fault, capsys
):
    """A captive portal answers every question with a page, or asks to log in to a proxy."""
    title = find(NAME).title
    server.faults["api"] = fault
    other = load_translator(NAME)
    assert other.name == title
    (note,) = (note for note in other.notes if "from the cache" in note)
    assert note.endswith(f"; {title} was opened from the cache.")
    assert note in other.translate("the cat", capture=False).notes
    assert main(["pull", NAME]) == 0
    assert capsys.readouterr().err == f"{note}\n"
    refused("is not in the cache at", find, "user/other", None, hub)


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
    with pytest.raises(
        CheckpointError, match="is not a name on the Hub, so it has no revision 'v1'"
    ):
        load_translator(original, revision="v1")
    refused(
        "no model directory user/other. As a name on the Hub: There is no",
        load_translator,
        "user/other",
    )
    refused("There is no model directory", load_translator, Path("nowhere/model"))


def test_an_offer_says_size_and_memory_before_anything_large_is_fetched(server, hub, original):
    offer = look(NAME)
    told = []
    assert offer.nbytes == sum(path.stat().st_size for path in original.iterdir())
    weights = sum(parameter.numel() for parameter in load_translator(original).model.parameters())
    assert parameter_count(offer.config) == pytest.approx(weights, rel=0.1)
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
def test_what_goes_wrong_is_one_sentence_and_the_older_state_still_opens(
    server, hub, file, fault, message
):
    known = find(NAME)
    files = read_files(known.directory)
    names = {"model__safetensors": "model.safetensors", "vocab__json": "vocab.json"}
    newer = {name: files[file] + b" " * 100_000 for name, file in names.items()}
    commit = change(server, **newer)
    server.faults[file] = fault
    other = Hub(
        endpoint=hub.endpoint, cache_dir=hub.cache.parent / "empty", token=False, timeout=0.2
    )
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


# --- what may not come: paths for names, too much, models of another kind, hostile files ---------

MONSTER = b'{"model_type": "marian", "encoder_layers": 1000000000}'


def test_names_of_the_hub_are_told_from_paths():
    assert all(map(is_name, ("Helsinki-NLP/opus-mt-en-de", "user/a.b_c-1")))
    wrong = ("opus", "a/b/c", "../x", "a/..", "/a/b", "a/b.git", "a--b/c", "a/b--c", ".a/b", "a/-b")
    assert not any(map(is_name, (*wrong, "", "a/b\n", "a b/c", "a/" + "b" * 100)))


PASTED = {
    **dict.fromkeys(
        (" a/b ", "a/b/", "a/b/tree/main", "a/b/discussions", "a/b?x=1", "a/b#use"), "a/b"
    ),
    **dict.fromkeys(
        ("https://huggingface.co/a/b", "http://www.hf.co/a/b/blob/main/x", "hf.co/a/b"), "a/b"
    ),
    **dict.fromkeys(
        ("https://github.com/a/b", "github.com/a/b", "https://huggingface.co.evil.com/a/b")
    ),
    **dict.fromkeys(
        ("https://modelscope.cn/models/a/b", "https://evil.com/hf.co/a/b", "//hf.co/a/b")
    ),
    **dict.fromkeys(
        ("https://hf.co/datasets/a", "hf.co/spaces/a/b", "ftp://hf.co/a/b", "https://[x/a/b")
    ),
    **dict.fromkeys(("a", "a/b/c", "../a", "a/..", "", "models/a/b")),
}
"""What somebody may paste, and the model that it names."""


def test_an_address_of_another_host_is_no_name_and_a_mirror_s_is():
    assert {text: pasted_name(text) for text in PASTED} == PASTED
    assert pasted_name("https://mirror.example/a/b") is None
    mirror = Hub(endpoint="https://mirror.example")
    assert pasted_name("https://mirror.example/a/b", mirror) == "a/b"


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
    refused(
        "user/tiny has 3.0 GB, but downloads are limited to 1.5 GB; TRANSFORMER_HUB_GB", find, NAME
    )
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
def test_a_model_of_another_kind_is_refused_before_its_weights_are_fetched(
    server, hub, changes, message
):
    change(server, **changes)
    refused(message, find, NAME)
    assert server.asked("GET", "/storage/") == 0


def test_a_hostile_listing_names_no_file_outside(server, hub):
    change(
        server,
        **{"../../../x": b"x", "/etc/x": b"x", "model-00001-of-00002__safetensors/../x": b"x"},
    )
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
    refused(
        "vocab.json of user/tiny lies outside the cache of its model", load_translator, path.parent
    )


def test_errors_of_a_model_s_files_name_the_model_and_not_the_server_s_folders(server, hub):
    change(server, vocab__json=b'{"a": -1}')
    with pytest.raises(
        HubError, match=r"user/tiny@.{8}/vocab\.json has numbers that are not"
    ) as caught:
        load_translator(NAME)
    assert str(hub.cache) not in str(caught.value)
