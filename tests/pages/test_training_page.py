"""The page Training: its sentences and pictures, against the model, and bad addresses."""

import json
from functools import partial
from pathlib import Path

import pytest
from app_pages import charts, run, words

from explorer.app.sections.training.history import table
from explorer.app.sections.training.lesson import about_target
from transformer.storage.card import Header
from transformer.storage.directory import save_checkpoint
from transformer.storage.files import read_json
from transformer.training.history import read_history, write_history
from transformer.translator import Translator

PAGE = "pages/training.py"
TEXT = "one two three"
OWN = "eins drei zwei"


def write_log(path: Path) -> Path:
    """The log of a short run."""
    lines = [
        {"step": step, "loss": 9 / step, "learning_rate": step / 10}
        | {"gradient_norm": 1.0, "tokens": step, "seconds": 0.5}
        for step in range(1, 6)
    ]
    lines[-1] |= {"valid_loss": 2.0, "bleu": 30.0, "bleu_sentences": 4}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


opened = partial(run, PAGE, model="random", text=TEXT, target=OWN)


def equation_3(step: int, d_model: int, warmup: int) -> float:
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def test_the_schedule_is_equation_3_for_the_width_and_warm_up_of_the_address_and_of_the_sliders():
    at = opened(view="schedule", width="256", warmup="700")
    assert "states no training command" in words(at)
    (line,) = charts(at)[0]["data"]
    expected = [equation_3(step, 256, 700) for step in line["x"]]
    assert line["y"] == pytest.approx(expected, rel=1e-6)
    assert line["x"][line["y"].index(max(line["y"]))] == 700


@pytest.fixture
def logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, translator: Translator) -> Path:
    """A model of the visitor's own whose run is logged; returns its directory."""
    directory = tmp_path / "models" / "logged"
    save_checkpoint(
        directory, translator.config, translator.model.state_dict(), translator.tokenizer
    )
    write_history(directory, write_log(tmp_path / "log.jsonl"), "command", "2026-01-01")
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path / "models"))
    return directory


def test_the_history_is_drawn_from_the_file_beside_the_model(logged: Path):
    at = run(PAGE, model="logged", text=TEXT, view="history")
    assert "In 5 steps, the training loss fell from 9.00 to **1.80 nats**" in words(at)
    assert "BLEU (greedy) was **30.0** at step 5" in words(at)
    found = read_history(logged)
    assert found is not None
    lines = {(each["yaxis"], each["name"]): each for each in charts(at)[0]["data"]}
    assert lines["y3", "learning rate"]["y"] == list(found.training["learning_rate"])
    assert lines["y", "single steps"]["y"] == list(found.training["loss"])
    valid = lines["y", "validation loss"]
    assert (valid["x"], valid["y"]) == ([5], [2.0])
    rows = table(found)
    assert ("bleu", 5, 30.0) in rows
    assert len(rows) == 1 + 5 * 5 + 2


DISTILLED = """---
training_targets: what a teacher writes
training_start: Its encoder is a teacher's.
training_course: The rate starts again at step 3.
model-index:
- results:
  - dataset:
      name: news
    metrics:
    - type: bleu
      value: 12.5
---

## Training

5 steps on one core. More is said here.
"""


def test_what_is_said_of_the_training_is_what_the_card_states(logged: Path):
    before = words(run(PAGE, model="logged", text=TEXT, view="history"))
    (logged / "README.md").write_text(DISTILLED)
    after = words(run(PAGE, model="logged", text=TEXT, view="history"))
    lines = (
        "The targets, those of the validation too, are what a teacher writes: BLEU says how like "
        "them the output is. BLEU on tests, as its card states it: 12.5 on news.",
        "Its encoder is a teacher's.",
        "The rate starts again at step 3.",
    )
    assert not any(line in before for line in lines)
    assert all(line in after.replace("\\", "") for line in lines)
    whole = words(run("pages/whole_model.py", model="logged", text=TEXT))
    assert "| training | 5 steps on one core. Its encoder is a teacher's. |" in whole.replace(
        "\\", ""
    )


@pytest.mark.parametrize(
    ("card", "sentence"),
    [
        ("", "The target is the reference translation of this example, not the model's output."),
        (
            DISTILLED,
            "The target is the reference translation of this example, not the model's output. "
            "In this model's training, targets were what a teacher writes.",
        ),
    ],
    ids=["nothing stated", "distilled"],
)
def test_the_target_of_an_example_is_called_what_it_is(card: str, sentence: str):
    assert about_target(Header.of(card)) == sentence


def test_a_damaged_history_is_named(logged: Path):
    values = read_json(logged / "history.json")
    (logged / "history.json").write_text(json.dumps(values | {"training": []}), encoding="utf-8")
    at = run(PAGE, model="logged", text=TEXT, view="history")
    assert "is damaged" in at.error[0].value
