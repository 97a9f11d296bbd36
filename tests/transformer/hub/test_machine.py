"""Models that other programs keep: what is there is listed, and nothing that they wrote is an
error."""

import json
from pathlib import Path
from typing import Any

import pytest

from transformer.hub import machine
from transformer.hub.machine import Keeper, KeptModel, kept_models, lm_studio_models, ollama_models

GGUF = b"GGUF and what follows"
DIGEST = "ab" * 32
WEIGHTS = "application/vnd.ollama.image.model"
LAYER: dict[str, Any] = {"mediaType": WEIGHTS, "digest": f"sha256:{DIGEST}", "size": 5}
OTHER: dict[str, Any] = {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:1"}


def write_manifest(folder: Path, name: str, values: object) -> Path:
    path = folder / "manifests" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(values if isinstance(values, str) else json.dumps(values))
    return path


def write_blob(folder: Path, content: bytes = GGUF, digest: str = DIGEST) -> Path:
    path = folder / "blobs" / f"sha256-{digest}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("registry.ollama.ai/library/smollm/135m", "smollm:135m"),
        ("registry.ollama.ai/someone/small/latest", "someone/small:latest"),
        ("hf.co/someone/small-GGUF/Q8_0", "hf.co/someone/small-GGUF:Q8_0"),
    ],
)
def test_a_model_of_ollama_is_the_file_that_its_manifest_names(
    tmp_path: Path, path: str, title: str
) -> None:
    write_manifest(tmp_path, path, {"schemaVersion": 2, "layers": [OTHER, LAYER]})
    blob = write_blob(tmp_path)
    assert list(ollama_models(tmp_path)) == [
        KeptModel(
            name=f"ollama/{title}",
            title=title,
            path=blob,
            nbytes=len(GGUF),
            keeper=Keeper.OLLAMA,
        )
    ]


DAMAGED: dict[str, object] = {
    "no JSON": "{",
    "a list": [],
    "deep": "[" * 100_000,
    "no layers": {},
    "layers that are none": {"layers": 5},
    "a layer that is none": {"layers": [5]},
    "no weights": {"layers": [OTHER]},
    "no digest": {"layers": [{"mediaType": WEIGHTS}]},
    "a digest of another kind": {"layers": [LAYER | {"digest": 7}]},
    "a way out": {"layers": [LAYER | {"digest": "sha256:../../../outside"}]},
    "a file that is not there": {"layers": [LAYER | {"digest": f"sha256:{'0' * 64}"}]},
    "too large": json.dumps({"layers": [LAYER]}) + " " * machine.MOST_MANIFEST,
}


@pytest.mark.parametrize("values", DAMAGED.values(), ids=list(DAMAGED))
def test_a_damaged_manifest_is_left_out_and_the_others_stay(tmp_path: Path, values: object) -> None:
    write_blob(tmp_path)
    (tmp_path / "outside").write_bytes(GGUF)
    write_manifest(tmp_path, "registry.ollama.ai/library/bad/latest", values)
    write_manifest(tmp_path, "registry.ollama.ai/library/good/latest", {"layers": [LAYER]})
    assert [model.title for model in ollama_models(tmp_path)] == ["good:latest"]


def test_bytes_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    write_blob(tmp_path)
    path = write_manifest(tmp_path, "registry.ollama.ai/library/bad/latest", "")
    path.write_bytes(b"\xff\xfe{")
    assert not [*ollama_models(tmp_path)]


def test_weights_of_another_format_are_left_out(tmp_path: Path) -> None:
    write_blob(tmp_path, b"PK\3\4")
    write_manifest(tmp_path, "registry.ollama.ai/library/bad/latest", {"layers": [LAYER]})
    assert not [*ollama_models(tmp_path)]


def test_no_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    outside = tmp_path / "secret"
    outside.write_bytes(GGUF)
    (folder / "blobs").mkdir(parents=True)
    (folder / "blobs" / f"sha256-{DIGEST}").symlink_to(outside)
    write_manifest(folder, "registry.ollama.ai/library/bad/latest", {"layers": [LAYER]})
    assert not [*ollama_models(folder)]
    inside = write_blob(folder, digest="cd" * 32)
    (folder / "blobs" / f"sha256-{DIGEST}").unlink()
    (folder / "blobs" / f"sha256-{DIGEST}").symlink_to(inside)
    assert len([*ollama_models(folder)]) == 1
    foreign = tmp_path / "manifest"
    foreign.write_text(json.dumps({"layers": [LAYER]}))
    link = folder / "manifests" / "registry.ollama.ai" / "library" / "bad" / "link"
    link.symlink_to(foreign)
    assert [model.title for model in ollama_models(folder)] == ["bad:latest"]
    studio = tmp_path / "studio"
    (studio / "someone" / "small").mkdir(parents=True)
    (studio / "someone" / "small" / "a.gguf").symlink_to(outside)
    assert not [*lm_studio_models(studio)]


def test_models_of_lm_studio_are_whole_files_that_write(tmp_path: Path) -> None:
    folder = tmp_path / "someone" / "small-GGUF"
    folder.mkdir(parents=True)
    names = (
        "small-Q8_0.gguf",
        "large-00001-of-00002.gguf",
        "large-00002-of-00002.gguf",
        "mmproj-small.gguf",
        "notes.txt",
    )
    for name in names:
        (folder / name).write_bytes(GGUF)
    (folder / "empty.gguf").write_bytes(b"")
    (folder / "folder.gguf").mkdir()
    kept = list(lm_studio_models(tmp_path))
    assert [model.title for model in kept] == ["large-00001-of-00002", "small-Q8_0"]
    assert kept[1] == KeptModel(
        name="lmstudio/someone/small-GGUF/small-Q8_0",
        title="small-Q8_0",
        path=folder / "small-Q8_0.gguf",
        nbytes=len(GGUF),
        keeper=Keeper.LM_STUDIO,
    )


def test_folders_are_those_of_the_programs_and_the_first_of_a_name_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(machine.OLLAMA_VARIABLE, raising=False)
    monkeypatch.setattr(machine, "OLLAMA_FOLDERS", ("~/.ollama/models",))
    monkeypatch.setattr(
        machine, "LM_STUDIO_FOLDERS", ("~/.lmstudio/models", "~/.cache/lm-studio/models")
    )
    assert kept_models() == ()
    ollama = tmp_path / ".ollama" / "models"
    write_blob(ollama)
    write_manifest(ollama, "registry.ollama.ai/library/small/latest", {"layers": [LAYER]})
    for folder in (".lmstudio", ".cache/lm-studio"):
        path = tmp_path / folder / "models" / "someone" / "small" / "small.gguf"
        path.parent.mkdir(parents=True)
        path.write_bytes(GGUF + folder.encode())
    kept = kept_models()
    assert [model.name for model in kept] == ["lmstudio/someone/small/small", "ollama/small:latest"]
    assert kept[0].path == tmp_path / ".lmstudio/models/someone/small/small.gguf"
    monkeypatch.setenv(machine.OLLAMA_VARIABLE, str(tmp_path / "elsewhere"))
    assert [model.keeper for model in kept_models()] == [Keeper.LM_STUDIO]


def test_a_folder_that_nobody_may_read_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "glob", forbidden)
    assert not [*ollama_models(tmp_path), *lm_studio_models(tmp_path)]
