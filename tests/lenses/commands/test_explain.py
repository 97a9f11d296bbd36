"""`explain` prints what the measures give, and one sentence for what it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from programs import main
from random_models import random_recurrent

from lenses.measures.attribution import attribution
from transformer.runs.translator import Translator, load_translator
from transformer.storage.directory import save_checkpoint
from transformer.text.words import readable
from transformer.trace.recorder import Capture

TEXT = "one two three"


@pytest.fixture
def model(translator: Translator, tmp_path: Path) -> Path:
    state = translator.model.state_dict()
    save_checkpoint(tmp_path / "model", translator.config, state, translator.tokenizer)
    return tmp_path / "model"


def written(model: Path) -> str:
    return readable(load_translator(model).translate(TEXT).target_tokens[0])


def test_the_parts_of_a_logit_are_those_of_the_measure(model: Path, capsys: pytest.CaptureFixture[str]):
    token = written(model)
    command = ["explain", "--model", str(model), TEXT, "--target", token, "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    own = load_translator(model)
    run = own.translate(TEXT, capture=Capture(residual=True))
    expected = attribution(own.model, run, 0, run.steps[0].token_id)
    assert sum(each["value"] for each in found["values"]) == pytest.approx(expected.total, abs=1e-3)
    assert found["audit_passed"]
    assert found["step"] == 1


@pytest.mark.parametrize("measure", ["attribution", "gradients", "alti", "weight", "carried", "effect"])
def test_every_measure_is_printed(model: Path, measure: str, capsys: pytest.CaptureFixture[str]):
    command = ["explain", "--model", str(model), TEXT, "--target", written(model), "--against", "two"]
    assert main([*command, "--measure", measure, "--kind", "cross", "--layer", "2", "--head", "1"]) == 0
    out = capsys.readouterr().out
    assert f"{measure} of “{written(model)}”" in out
    assert "FAILED" not in out


@pytest.mark.parametrize("measure", ["attribution", "gradients", "alti", "carried", "effect"])
def test_a_recurrent_model_is_refused_in_one_sentence(
    translator: Translator, tmp_path: Path, measure: str, capsys: pytest.CaptureFixture[str]
):
    network = random_recurrent("dot", vocab_size=translator.config.vocab_size)
    save_checkpoint(tmp_path / "gru", network.config, network.state_dict(), translator.tokenizer)
    command = ["explain", "--model", str(tmp_path / "gru"), TEXT, "--target", written(tmp_path / "gru")]
    assert main([*command, "--measure", "weight"]) == 0
    capsys.readouterr()
    assert main([*command, "--measure", measure]) != 0
    (told,) = capsys.readouterr().err.strip().splitlines()
    assert "needs a Transformer" in told


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--target", "zebra"], "has no token 'zebra'"),
        (["--against", "one two three"], "is not one token of this model"),
        (["--head", "99"], "There is no head 1.99 of the kind cross."),
    ],
)
def test_what_is_not_there_gets_a_sentence(
    model: Path, more: list[str], told: str, capsys: pytest.CaptureFixture[str]
):
    command = ["explain", "--model", str(model), TEXT, "--target", written(model)]
    assert main([*command, *more]) != 0
    assert told in capsys.readouterr().err
