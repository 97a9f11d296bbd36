"""The script of a page, joined from modules; and `page`, the command that writes pages."""

import errno
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest
from decoder_models import write_decoder, write_gguf
from living_pages import Opened

from explorer import show
from explorer.__main__ import main
from explorer.linked.live.carried import why_not
from explorer.linked.living.scripts import ENTRY, REPLACED, JoinError, joined, script, style
from explorer.linked.served import scripts
from transformer import interventions as do
from transformer import load_language_model, load_translator
from transformer.decoding import FREE


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('import it from "./it.js";', "import it"),
        ('import * as it from "./it.js";', "import \\*"),
        ('import "./it.js";', "import"),
        ("export default 1;", "export default"),
        ("export { it };", "export { it }"),
        ("export let it = 1;", "export let"),
        ('const it = await import("./it.js");', "import\\("),
        ("const it = import.meta.url;", "import.meta"),
        ('const it = "</SCRIPT>";', "ends a script"),
        ('const it = "<!--";', "ends a script"),
        ('import { it } from "./absent.js";', "no script a/absent.js"),
        ('import { it } from "../../it.js";', "no folder of scripts"),
        ('import { it } from "./one.js";', "circle"),
    ],
)
def test_what_cannot_be_joined_is_refused(tmp_path: Path, text: str, reason: str):
    (tmp_path / "a").mkdir()
    for name, module in {"one": text, "it": "export const it = 1;"}.items():
        (tmp_path / f"a/{name}.js").write_text(module, encoding="utf-8")
    with pytest.raises(JoinError, match=reason):
        joined(tmp_path, "a/one.js", {})


def test_the_page_s_script_has_each_module_once_and_fetches_nothing():
    made = script()
    assert made == joined(scripts(), ENTRY, REPLACED)
    names = re.findall(r'^modules\["(.*?)"\] = ', made, re.M)
    assert len(names) == len(set(names)) > 25
    assert not {*REPLACED} & {*names}
    assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket|localStorage|importScripts", made)
    assert "@import" not in style()
    assert "url(" not in style()


# --- the command ---------------------------------------------------------------------------------

TEXTS = ("one two three", "<b>four</b>")


def test_a_text_becomes_a_page(closed_form_models: dict[str, Path], tmp_path: Path, capsys):
    model = closed_form_models["reverse"]
    path = tmp_path / "run.html"
    command = ["page", "--model", str(model), "--output", str(path), "--device", "cpu", TEXTS[0]]
    assert main([*command, "--place", "step=2"]) == 0
    run = load_translator(model).translate(TEXTS[0])
    assert capsys.readouterr().out == f"{path}: {run.text}\n"
    opened = Opened(path.read_text(encoding="utf-8"))
    assert opened.run["said"]["texts"] == [text for text in (run.source_text, run.text) if text]
    assert opened.place == "step=2"
    assert "measures" not in opened.run["kinds"]["cross"]
    assert main([*command, "--beam-size", "2", "--measure", "carried"]) == 0
    content = path.read_text(encoding="utf-8")
    assert "measures" in Opened(content).run["kinds"]["cross"]
    assert "beam-2" in content


def test_a_text_of_a_decoder_becomes_a_page(tmp_path: Path):
    directory = tmp_path / "llama"
    directory.mkdir()
    write_decoder(directory, "Llama, groups of three")
    write_gguf(tmp_path / "small.gguf", directory, "llama")
    path = tmp_path / "run.html"
    for model in (directory, tmp_path / "small.gguf"):
        command = ["page", "--model", str(model), "--output", str(path), "--device", "cpu"]
        assert main([*command, "the old house", "--measure", "effect"]) == 0
        run = load_language_model(model, "cpu").generate("the old house")
        opened = Opened(path.read_text(encoding="utf-8"))
        assert opened.run["said"]["texts"] == [run.text]
        assert list(opened.run["kinds"]) == ["decoder"]
        assert "measures" in opened.run["kinds"]["decoder"]
        notebook = show(run, load_language_model(model, "cpu"))
        assert Opened(notebook.page).run["said"]["texts"] == [run.text]


def test_lines_of_a_file_become_pages(closed_form_models: dict[str, Path], tmp_path: Path, capsys):
    file = tmp_path / "texts.txt"
    folder = tmp_path / "pages"
    file.write_text("\n".join((TEXTS[0], "", TEXTS[1], "one " * 300)), encoding="utf-8")
    model = str(closed_form_models["copy"])
    assert main(["page", "--model", model, "--file", str(file), "--output", str(folder)]) == 1
    assert f"{file}:4: " in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} == {"1.html", "3.html", "index.html"}
    index = (folder / "index.html").read_text(encoding="utf-8")
    assert '<a href="3.html">&lt;b&gt;four&lt;/b&gt;</a>' in index


def test_another_text_or_model_or_the_unchanged_run_stands_beside(
    closed_form_models, tmp_path: Path
):
    one = closed_form_models["copy"]
    other = closed_form_models["reverse"]
    path = tmp_path / "run.html"
    command = ["page", "--model", str(one), TEXTS[0], "--output", str(path), "--device", "cpu"]
    ways = {
        ("--beside", "three two"): load_translator(one).translate("three two"),
        ("--beside-model", str(other)): load_translator(other).translate(TEXTS[0]),
        ("--changes", do.write_text([do.ablate("cross", 0, 1)])): load_translator(one).translate(
            TEXTS[0]
        ),
    }
    for way, run in ways.items():
        assert main([*command, *way]) == 0
        page = path.read_text(encoding="utf-8")
        texts = [each for each in (run.source_text, run.text) if each]
        assert Opened(page, "-2").run["said"]["texts"] == texts
        assert ("gives no output" in str(Opened(page).run["said"].get("changes"))) == (
            "--changes" in way
        )


@pytest.mark.parametrize("words", [[], ["one", "--file", "texts.txt"]])
def test_one_text_or_a_file_is_needed(words: list[str], tmp_path: Path, capsys):
    assert main(["page", *words, "--model", "none", "--output", str(tmp_path / "run.html")]) == 2
    assert "one text, or a file" in capsys.readouterr().err


def test_a_page_that_translates_is_one_file_or_a_folder_with_the_model_beside_it(
    closed_form_models, tmp_path, capsys
):
    command = ["live", "one two", "--model", str(closed_form_models["copy"]), "--output"]
    file = tmp_path / "live.html"
    folder = tmp_path / "web"
    assert main([*command, str(file)]) == 0
    assert main([*command, str(folder), "--folder"]) == 0
    sizes = [path.stat().st_size / 1e6 for path in (file, folder / "index.html")]
    lines = [f"{file}: {sizes[0]:.1f} MB", f"{folder}: {sizes[1]:.1f} MB, and the model beside it"]
    assert capsys.readouterr().out.splitlines() == lines
    assert {path.name for path in folder.iterdir()} == {
        "index.html",
        "model.safetensors",
        "tokenizer.model",
    }
    assert sizes[0] > sizes[1]


def test_a_decoder_s_page_has_rounded_weights_and_its_pieces_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "llama"
    directory.mkdir()
    write_decoder(directory, "Llama, groups of three")
    command = ["live", "the old", "--model", str(directory), "--output"]
    assert main([*command, str(tmp_path / "web"), "--folder"]) == 0
    names = {path.name for path in (tmp_path / "web").iterdir()}
    assert names == {"index.html", "model.safetensors", "pieces.json"}
    stored = (tmp_path / "web/model.safetensors").stat().st_size
    assert stored < (directory / "model.safetensors").stat().st_size / 3
    monkeypatch.setattr("explorer.linked.live.carried.MOST_IN_A_FILE", 1_000)
    assert main([*command, str(tmp_path / "live.html")]) == 2
    assert "write a folder, with --folder." in capsys.readouterr().err
    monkeypatch.setattr("explorer.linked.live.carried.MOST_NUMBERS", 1_000)
    assert main([*command, str(tmp_path / "web"), "--folder"]) == 2
    assert "A page runs models of up to" in capsys.readouterr().err
    forced = {"forced_eos_token_id": 5, "eos_token_id": 0}
    (directory / "generation_config.json").write_text(json.dumps(forced))
    assert main([*command, str(tmp_path / "live.html")]) == 2
    assert "keeps rules of its own" in capsys.readouterr().err


def test_a_full_disk_leaves_the_older_folder_whole_and_names_the_file(
    closed_form_models, tmp_path, capsys, monkeypatch
):
    command = [
        "live",
        "one two",
        "--model",
        str(closed_form_models["copy"]),
        "--output",
        str(tmp_path),
    ]
    older = dict.fromkeys(("index.html", "model.safetensors", "tokenizer.model"), b"older")
    for name, content in older.items():
        (tmp_path / name).write_bytes(content)

    def half(source: IO[bytes], target: IO[bytes]) -> None:
        target.write(source.read()[:100])
        if "tokenizer" in str(source.name):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", half)
    assert main([*command, "--folder"]) == 2
    path = tmp_path / "tokenizer.model"
    assert capsys.readouterr().err == f"{path} could not be written: No space left on device.\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == older


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"rules": replace(FREE, no_repeat=2)}, "of another family"),
        ({"tokenizer": object()}, "of another family"),
        ({"config": None}, "recurrent"),
    ],
)
def test_what_a_browser_cannot_run_is_no_model_of_this_package(
    closed_form_models, changes, reason: str
):
    path = closed_form_models["copy"]
    model = load_translator(path)
    parts = {name: getattr(model, name) for name in ("config", "rules", "tokenizer")}
    said = why_not(SimpleNamespace(**parts | changes), path)  # type: ignore[arg-type]
    assert reason in said
    assert bool(said) == bool(reason)
    assert "another family" in why_not(model, path.parent), "its files are not there"
