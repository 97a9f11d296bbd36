from __future__ import annotations

import re
from pathlib import Path

import pytest

from explorer.lenses.targets.stated import stated_options, stated_task
from transformer.storage.card import training_card
from transformer.training.options import TrainingOptions, learning_rate
from transformer.training.presets import PRESETS

MODELS = Path(__file__).parents[4] / "assets" / "models"
CARD = "# A model\n\n```sh\npython -m transformer train --train a.tsv {}\n```\n"


def test_the_schedule_of_the_bundled_model_is_the_one_its_card_tells_in_words():
    card = (MODELS / "en-de" / "README.md").read_text()
    options = stated_options(card)
    assert options is not None
    words = " ".join(card.partition("## Training")[2].split())
    steps = [int(each.replace(",", "")) for each in re.findall(r"([\d,]+) steps", words)]
    assert {options.steps, options.warmup} <= set(steps)
    assert options.schedule in words
    assert f"last {options.decay_steps:,}" in words
    assert learning_rate(options, options.steps - options.decay_steps, 256) == options.learning_rate


def test_the_last_of_several_values_counts():
    options = stated_options(CARD.format("--steps 30 --warmup 4") + CARD.format("--steps 20"))
    assert options is not None
    assert (options.steps, options.warmup) == (20, 4)


def test_a_flag_without_a_value_does_not_take_the_next_flag():
    options = stated_options(CARD.format("--resume --steps 20 --compile --warmup 4"))
    assert options is not None
    assert (options.steps, options.warmup) == (20, 4)


def test_what_no_flag_says_comes_from_the_preset():
    options = stated_options(CARD.format("--preset positions-shaw --learning-rate 2e-3"))
    assert options == TrainingOptions(**{**PRESETS["positions-shaw"].options, "learning_rate": 2e-3})


def test_the_card_that_a_training_run_writes_can_be_read(translator):
    command = "python -m transformer train --train a.tsv --steps 123 --schedule inverse_sqrt"
    options = stated_options(training_card("m", ["en", "de"], command, ["a.tsv"], translator.config, 7))
    assert options is not None
    assert (options.steps, options.schedule) == (123, "inverse_sqrt")


@pytest.mark.parametrize(
    "card",
    [
        "",
        "```sh\npython -m lab remake --model x\n```\n",
        CARD.format("--steps many"),
        CARD.format("--schedule sideways"),
        CARD.format("--warmup 0"),
        "python -m transformer train --steps 5",
    ],
    ids=str,
)
def test_a_card_without_a_readable_command_states_nothing(card: str):
    assert stated_options(card) is None


def test_a_card_names_the_toy_task_that_was_learned():
    assert stated_task(CARD.format("--toy reverse --toy-length 6")) == ("reverse", 6)
    assert stated_task(CARD.format("--toy sort")) == ("sort", 5)
    assert stated_task(CARD.format("--toy knitting")) is None
    assert stated_task(CARD.format("--toy sort --toy-length 900")) is None
    assert stated_task("# A model\n") is None
