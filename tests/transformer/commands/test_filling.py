"""`fill`, and `attention` and `models` with an encoder alone."""

import json
import math
from pathlib import Path

import pytest
from encoder_models import write_encoder
from programs import main

from transformer import load_encoder
from transformer.commands import models

Capsys = pytest.CaptureFixture[str]
TEXT = "the [MASK] house and two [MASK]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a head for masked words, and one without."""
    folder = tmp_path_factory.mktemp("models")
    write_encoder(folder / "bert", "BERT")
    write_encoder(folder / "minilm", "MiniLM")
    return folder


def done(capsys: Capsys, *arguments: str, status: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert main(arguments) == status
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_masks_are_filled_with_the_best_tokens_and_their_probabilities(
    folder: Path, capsys: Capsys
) -> None:
    model = str(folder / "bert")
    run = load_encoder(model, "cpu").fill(TEXT)
    (out, _) = done(capsys, "fill", TEXT, "--model", model, "--top", "3", "--json")
    values = json.loads(out)
    assert values["text"] == run.text
    assert [fill["position"] for fill in values["fills"]] == [*run.fills]
    for fill, step in zip(values["fills"], run.fills.values(), strict=True):
        best = [(token["token_id"], token["log_prob"]) for token in fill["tokens"]]
        expected = [(best.token_id, round(best.log_prob, 5)) for best in step.alternatives[:3]]
        assert best == expected
    (out, _) = done(capsys, "fill", TEXT, "--model", model, "--top", "3")
    (text, *lines) = out.splitlines()
    assert text == run.text
    for line, step in zip(lines, run.fills.values(), strict=True):
        tokens = [entry.rsplit(" ", 1) for entry in line.strip().split(", ")]
        assert len(tokens) == 3
        assert float(tokens[0][1]) == pytest.approx(math.exp(step.log_prob), abs=1e-3)


def test_without_a_model_the_bundled_one_fills_if_there_is_one(
    folder: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(models, "ENCODERS", folder)
    (out, _) = done(capsys, "fill", TEXT)
    assert out.startswith(load_encoder(folder / "bert", "cpu").fill(TEXT).text)
    monkeypatch.setattr(models, "ENCODERS", tmp_path)
    (_, err) = done(capsys, "fill", TEXT, status=2)
    assert "name one by --model" in err


REFUSED = {
    "no mask": (["fill", "the house", "--model", "bert"], 1, "write [MASK] for one"),
    "no head": (["fill", TEXT, "--model", "minilm"], 2, "no output for masked words"),
    "an empty text": (["fill", " ", "--model", "bert"], 1, "The text is empty"),
    "a kind": (
        ["attention", "a", "--model", "bert", "--kind", "cross"],
        2,
        "no cross attention; its kinds are encoder",
    ),
    "a translation": (
        ["attention", "a", "--model", "bert", "--target", "b"],
        2,
        "an encoder alone, which writes no output",
    ),
    "a layer": (["attention", "a", "--model", "bert", "--layer", "9"], 2, "encoder layer 9"),
    "generate": (["generate", "a", "--model", "bert"], 2, "open it with load_encoder"),
    "translate": (["translate", "a", "--model", "bert"], 2, "open it with load_encoder"),
}


@pytest.mark.parametrize(("words", "status", "reason"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_be_done_is_said_in_a_sentence(
    words: list[str], status: int, reason: str, folder: Path, capsys: Capsys
) -> None:
    place = words.index("--model") + 1
    words = [*words[:place], str(folder / words[place]), *words[place + 1 :]]
    (_, err) = done(capsys, *words, status=status)
    assert reason in err
    assert err.count("\n") == 1


def test_attention_prints_a_head_of_an_encoder(folder: Path, capsys: Capsys) -> None:
    model = str(folder / "minilm")
    place = ["--layer", "2", "--head", "3"]
    (out, err) = done(capsys, "attention", "the old house", "--model", model, *place)
    lines = out.splitlines()
    assert lines[0] == "the old house"
    assert lines[1].startswith("encoder attention, layer 2, head 3")
    assert lines[-1] == "audit: passed"
    assert "no output for masked words" in err
    (out, _) = done(capsys, "attention", "the old house", "--model", model, *place, "--json")
    run = load_encoder(model, "cpu").fill("the old house")
    weights = run.weights("encoder", 1, 2)
    assert json.loads(out)["weights"][1] == pytest.approx(weights[1].tolist(), abs=1e-6)


def test_encoders_are_listed(folder: Path, capsys: Capsys) -> None:
    (out, _) = done(capsys, "models", str(folder), "--json")
    rows = {Path(row["model"]).name: row for row in map(json.loads, out.splitlines())}
    assert [*rows] == ["bert", "minilm"]
    assert all((row["kind"], row["architecture"]) == ("BERT", "bert") for row in rows.values())
