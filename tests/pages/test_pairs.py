"""A model that is told both languages: two pickers with names, the run, the address, and the chips."""

import json
from pathlib import Path

import pytest
from app_pages import feeds, run
from m2m_models import write_m2m

from explorer.app.server import models
from explorer.lenses.words.languages import language_name
from transformer.families.m2m import M2M, NLLB
from transformer.text.words import is_special

TEXT = "two dogs ran over the hills ."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pairs")
    for kind in ("nllb", "m2m"):
        write_m2m(made / kind, kind=kind)
    return made


@pytest.fixture(autouse=True)
def opened_models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSFORMER_MODELS", str(folder))


def test_every_language_has_a_name_of_its_own() -> None:
    for pieces in (NLLB, [f"__{code}__" for code in M2M]):
        names = [language_name(piece) for piece in pieces]
        assert len(set(names)) == len(names)
        assert not set(names) & {piece.strip("_").split("_")[0] for piece in pieces} - {"Akan"}
        assert all(map(is_special, pieces))
    assert language_name("zho_Hant") == "Chinese (traditional)"
    assert language_name(">>xyz<<") == "xyz"


@pytest.mark.parametrize(("model", "pair", "other"), [
    ("nllb", "eng_Latn deu_Latn", "arb_Arab"),
    ("m2m", "__en__ __de__", "__ar__"),
])  # fmt: skip
def test_two_pickers_choose_the_languages_of_the_run_and_of_the_address(model, pair, other) -> None:
    at = run("app.py", model=model, text=TEXT)
    first, into = (each for each in at.selectbox if each.label in ("Translate from", "Into"))
    assert (first.value, into.value) == tuple(pair.split())
    assert "German" in into.options
    source, target = pair.split()
    assert f'"text": "{source}"' in json.dumps(feeds(at))
    assert f'"text": "{target}"' in json.dumps(feeds(at))
    into.select_index(into.options.index(language_name(other))).run()
    assert at.session_state["state"].language == f"{source} {other}"
    assert at.query_params["language"] == f"{source} {other}"
    assert f'"text": "{other}"' in json.dumps(feeds(at))
    again = run("app.py", model=model, text=TEXT, language=f"{source} {other}")
    assert next(each for each in again.selectbox if each.label == "Into").value == other


def test_a_text_that_names_its_languages_decides() -> None:
    at = run("app.py", model="nllb", text=f"fra_Latn eng_Latn {TEXT}")
    found = [each for each in at.selectbox if each.label in ("Translate from", "Into")]
    assert [each.value for each in found] == ["fra_Latn", "eng_Latn"]
    assert all(each.disabled for each in found)
    assert models.find("nllb").addressed(TEXT, "fra_Latn nonsense") == f"eng_Latn deu_Latn {TEXT}"
