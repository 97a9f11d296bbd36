"""A damaged file beside a model ends no page: the page says which file it is."""

import shutil
from pathlib import Path

import pytest
from app_pages import run, words

from explorer.app.server import gold, surveys
from explorer.lenses.heads.survey import fingerprint, surveyed
from explorer.lenses.words import languages
from transformer.storage.description import model_digests, read_header
from transformer.storage.files import CheckpointError
from transformer.storage.packed import write_packed

NUMBER = '{"examples": [{"label": 1' + "0" * 400 + "}]}"
CONTENTS = (
    NUMBER,
    '{"examples": [{"label": "\\ud800"}]}',
    "[" * 100_000,
    "{",
    "[]",
    "{}",
    "null",
    '{"examples": null}',
    '{"examples": []}',
    '{"examples": [{"label": 1}]}',
)


@pytest.mark.parametrize("content", CONTENTS)
def test_damaged_examples_are_named_and_the_usual_ones_offered(own_models: Path, content: str):
    shutil.copytree(own_models / "copy", own_models / "damaged")
    (own_models / "damaged" / "examples.json").write_text(content)
    told = words(run("app.py", model="damaged"))
    assert "examples.json beside the model is damaged; remove it, or write it again." in told.replace(
        "\\", ""
    )


@pytest.mark.parametrize(
    "header",
    [
        'language: ["\\ud800", de]',
        'license: "\\UFFFFFFFF"',
        "[" * 30_000,
        "version https://git-lfs.github.com",
    ],
)
def test_a_damaged_card_ends_no_page_and_is_named(own_models: Path, header: str):
    shutil.copytree(own_models / "copy", own_models / "damaged")
    (own_models / "damaged" / "README.md").write_text(f"---\n{header}\n---\n")
    for page in ("app.py", "pages/heads.py", "pages/training.py", "pages/whole_model.py"):
        assert not run(page, model="damaged").exception
    assert read_header(own_models / "damaged").trouble.endswith(
        ("valid YAML.", "valid YAML with named values.")
    )


@pytest.mark.parametrize("kinds", [None, [], {"encoder": None}, {"encoder": {"means": ["entropy"]}}])
def test_a_damaged_survey_ends_no_page_and_is_named_where_it_is_shown(own_models: Path, kinds: object):
    shutil.copytree(own_models / "copy", own_models / "damaged")
    data = languages.sample_of(own_models / "damaged")
    read = fingerprint(surveys.sample(data.data), gold.sample_of(languages.FOLDER / data.alignments))
    head = {"digests": model_digests(own_models / "damaged"), "sample": read, "kinds": kinds}
    write_packed(own_models / "damaged" / "survey.npz", head, {})
    for page in ("app.py", "pages/heads.py", "pages/what_if.py"):
        run(page, model="damaged")
    told = [each.value.replace("\\", "") for each in run("pages/heads.py", model="damaged").error]
    assert [each for each in told if "survey.npz is damaged" in each and str(own_models) not in each]
    with pytest.raises(CheckpointError, match=r"survey\.npz is damaged"):
        surveyed(own_models / "damaged")
