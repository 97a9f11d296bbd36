"""The page Training: its sentences and pictures, against the model, and bad addresses."""

import json
import math
from functools import partial
from pathlib import Path

import pytest
import torch
from app_pages import charts, run, words

from explorer.app.sections.training.history import table
from explorer.app.server import models
from explorer.lenses.targets.history import read_history, write_history
from transformer.config import TransformerConfig
from transformer.storage.directory import save_checkpoint
from transformer.storage.files import read_json
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


def bars(chart: dict) -> dict:
    return next(each for each in chart["data"] if each["type"] == "bar")


def log_probs() -> tuple[torch.Tensor, list[int]]:
    """(target, pieces) of the own translation, and its ids, from the plain forward pass."""
    model = models.find("random").translator()
    config: TransformerConfig = model.config
    source = torch.tensor([[*model.ids(TEXT), config.eos_id]])
    target = [*model.cut(OWN, "target").ids, config.eos_id]
    read = torch.tensor([[config.bos_id, *target[:-1]]])
    logits = model.model(*(each.to(model.device) for each in (source, read)))[0].cpu()
    return logits.double().log_softmax(-1), target


def test_the_bars_and_the_mean_are_the_cross_entropies_and_the_page_says_where_both_ways_part():
    found, target = log_probs()
    expected = [-float(row[token]) for row, token in zip(found, target, strict=True)]
    at, changed, marked = opened(), opened(changes="ablate_cross_1_1"), opened(step="2")
    for each in (at, changed, marked):
        drawn = bars(charts(each)[0])
        assert drawn["y"] == pytest.approx(expected, abs=1e-5), "changes do not hold here"
        assert drawn["customdata"] == list(range(len(target)))
    colours = drawn["marker"]["color"]
    assert [colour == colours[1] for colour in colours] == [i == 1 for i in range(len(target))]
    assert "without them" in words(changed)
    assert f"**{math.fsum(expected) / len(target):.2f} nats** per token" in words(at)
    free = models.find("random").translator().translate(TEXT, beam_size=1).target_ids
    step = next(i for i, pair in enumerate(zip(target, free, strict=False)) if pair[0] != pair[1])
    assert f"**step {step + 1}**" in words(at)
    assert "never part" in words(run(PAGE, model="random", text=TEXT))
    size = len(target)
    assert f"hides {size * (size - 1) // 2} of the {size * size} cells" in words(at)


def smoothed_loss(position: int, epsilon: float) -> float:
    found, target = log_probs()
    row = found[position]
    return -float((1 - epsilon) * row[target[position]] + epsilon * row.mean())


def test_the_loss_and_its_gradient_are_those_of_the_position_and_the_smoothing():
    found, target = log_probs()
    at = opened(view="loss", step="2", smoothing="0.2")
    assert f"The loss is **{smoothed_loss(1, 0.2):.2f} nats**" in words(at)
    assert f"{smoothed_loss(1, 0.2):.2f} \\text{{ nats}}" in at.latex[0].value
    bare, smoothed = [each["x"] for each in charts(at)[1]["data"]]
    right = float(found[1].exp()[target[1]])
    assert min(abs(value - (right - 1)) for value in bare) < 1e-5
    assert min(abs(value - (right - 0.8 - 0.2 / found.shape[1])) for value in smoothed) < 1e-5
    assert math.fsum(smoothed) == pytest.approx(0, abs=1e-5)
    assert "it would be 0 only at 100\u00a0%" in words(opened(view="loss", smoothing="0", step="1"))


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
    save_checkpoint(directory, translator.config, translator.model.state_dict(), translator.tokenizer)
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


def test_a_damaged_history_is_named(logged: Path):
    values = read_json(logged / "history.json")
    (logged / "history.json").write_text(json.dumps(values | {"training": []}), encoding="utf-8")
    at = run(PAGE, model="logged", text=TEXT, view="history")
    assert "is damaged" in at.error[0].value
