"""Questions of studies, with the titles of their models."""

from __future__ import annotations

import pytest
from app_pages import ROOT

from ui.server import models, studies


@pytest.mark.parametrize(
    ("model", "called"), [("birth", "Emergence of heads"), ("positions/postnorm", "post-norm)")]
)
def test_a_study_beside_a_model_calls_it_by_its_title(model: str, called: str):
    names = [name for name in studies.known() if name.rpartition("/")[0] == model]
    if not names and not (ROOT / "assets/models" / model / "model.safetensors").exists():
        pytest.skip("the bundled model is not here")
    for name in names:
        assert called in studies.question(name)
        assert f"“{model.rpartition('/')[2]}”" not in studies.question(name)


def test_the_question_of_other_studies_is_as_written():
    for name, path in studies.known().items():
        if "/" not in name:
            assert studies.question(name) == studies.study(path)["study"].question
        elif models.exists(name.rpartition("/")[0]):
            assert "“" in studies.question(name)


def test_a_study_that_nobody_knows_is_measured_by_no_command():
    assert studies.missing("nothing") == studies.missing("nothing/heads") == studies.missing("") == ""
