from __future__ import annotations

from pathlib import Path

import pytest
from living_pages import Opened

from explorer.__main__ import main
from transformer import interventions as do
from transformer import load_translator

TEXTS = ("one two three", "<b>four</b>")


def test_a_text_becomes_a_page(closed_form_models: dict[str, Path], tmp_path: Path, capsys):
    model, path = closed_form_models["reverse"], tmp_path / "run.html"
    given = ["page", "--model", str(model), "--output", str(path), "--device", "cpu"]
    assert main([*given, TEXTS[0], "--place", "step=2"]) == 0
    run = load_translator(model).translate(TEXTS[0])
    assert capsys.readouterr().out == f"{path}: {run.text}\n"
    opened = Opened(path.read_text(encoding="utf-8"))
    assert opened.run["said"]["texts"] == [text for text in (run.source_text, run.text) if text]
    assert opened.place == "step=2"
    assert "measures" not in opened.run["kinds"]["cross"]
    assert main([*given, TEXTS[0], "--beam-size", "2", "--measure", "carried"]) == 0
    assert "measures" in Opened(path.read_text(encoding="utf-8")).run["kinds"]["cross"]
    assert "beam-2" in path.read_text(encoding="utf-8")


def test_lines_of_a_file_become_pages(closed_form_models: dict[str, Path], tmp_path: Path, capsys):
    file, folder = tmp_path / "texts.txt", tmp_path / "pages"
    file.write_text("\n".join((TEXTS[0], "", TEXTS[1], "one " * 300)), encoding="utf-8")
    given = ["page", "--model", str(closed_form_models["copy"]), "--file", str(file), "--output", str(folder)]
    assert main(given) == 1
    assert f"{file}:4: " in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} == {"1.html", "3.html", "index.html"}
    index = (folder / "index.html").read_text(encoding="utf-8")
    assert '<a href="3.html">&lt;b&gt;four&lt;/b&gt;</a>' in index


def test_another_text_or_model_or_the_unchanged_run_stands_beside(
    closed_form_models: dict[str, Path], tmp_path: Path
):
    one, other, path = closed_form_models["copy"], closed_form_models["reverse"], tmp_path / "run.html"
    changes = do.write_text([do.ablate("cross", 0, 1)])
    text, more = TEXTS[0], "three two"
    ways = {
        ("--beside", more): load_translator(one).translate(more),
        ("--beside-model", str(other)): load_translator(other).translate(text),
        ("--changes", changes): load_translator(one).translate(text),
    }
    for given, run in ways.items():
        assert (
            main(["page", "--model", str(one), text, "--output", str(path), "--device", "cpu", *given]) == 0
        )
        page = path.read_text(encoding="utf-8")
        assert Opened(page, "-2").run["said"]["texts"] == [
            each for each in (run.source_text, run.text) if each
        ]
        assert ("gives no output" in str(Opened(page).run["said"].get("changes"))) == ("--changes" in given)


@pytest.mark.parametrize("given", [[], ["one", "--file", "texts.txt"]])
def test_one_text_or_a_file_is_needed(given: list[str], tmp_path: Path, capsys):
    assert main(["page", *given, "--model", "none", "--output", str(tmp_path / "run.html")]) == 2
    assert "one text, or a file" in capsys.readouterr().err
