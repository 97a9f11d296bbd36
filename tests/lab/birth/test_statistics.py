"""When heads appear: the statistics of snapshots against independent sums, and whose a file has."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from corpus import number_pairs, write_pairs
from programs import main
from snapshot_runs import STEPS, write_run

from lab.birth.appearing import first_lasting, runs_of
from lab.birth.statistics import SNAPSHOTS, Later, hashes, snapshot_statistics
from transformer.model.sites import AttentionKind
from transformer.runs.translator import Translator, load_translator
from transformer.storage.description import BIRTH_FILE
from transformer.storage.files import read_json
from transformer.text.links import GoldPair
from transformer.text.pairs import SentencePair
from transformer.text.vocabulary import Tokenizer
from transformer.training.runs.snapshots import load_snapshot, snapshot_steps

PAIRS = [SentencePair(*each) for each in number_pairs(4)]
LINKS = frozenset({(0, 0), (1, 1)})
GOLD = [GoldPair(("one", "two"), ("eins", "zwei"), LINKS, LINKS)]
BUNDLED = Path(__file__).resolve().parents[3] / "assets" / "models"


@pytest.fixture
def runs(tokenizer: Tokenizer, tmp_path: Path) -> tuple[Path, Path]:
    return write_run(tmp_path / "a", tokenizer), write_run(tmp_path / "b", tokenizer, seed=1)


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    write_pairs(tmp_path / "pairs.tsv", number_pairs(4))
    (tmp_path / "links.tsv").write_text("one two\teins zwei\t0-0 1-1\n")
    return ["birth", "--data", str(tmp_path / "pairs.tsv"), "--alignments", str(tmp_path / "links.tsv")]


def measured(run: Path, command: list[str], *options: object) -> dict:
    assert main([*command, "--model", str(run), *map(str, options)]) == 0
    return read_json(run / BIRTH_FILE)


def test_the_weight_on_later_tokens_is_that_of_the_softmax_without_a_mask(translator: Translator) -> None:
    later = Later()
    weight = rows = even = 0.0
    for pair in PAIRS:
        trace = translator.force(pair.source, pair.target).attention
        assert trace is not None
        later.add(trace, AttentionKind.DECODER)
        weights = torch.tensor(trace.scores(AttentionKind.DECODER, 1, 2)).softmax(-1)
        size = len(weights)
        weight += sum(float(weights[i, i + 1 :].sum()) for i in range(size - 1))
        even += sum((size - 1 - i) / size for i in range(size))
        rows += size - 1
    assert later.mean()[1, 2] == pytest.approx(weight / rows, abs=1e-5)
    assert later.even == pytest.approx(even / rows)


def test_in_the_encoder_it_is_the_real_weight(translator: Translator) -> None:
    trace = translator.force("one two three", "eins zwei").attention
    assert trace is not None
    later = Later()
    later.add(trace, AttentionKind.ENCODER)
    weights = trace.weights(AttentionKind.ENCODER, 0, 1)
    assert later.mean()[0, 1] == pytest.approx(np.triu(weights, 1).sum() / (len(weights) - 1), abs=1e-6)


def test_a_copying_model_has_its_closed_form_aligner(closed_form_models: dict[str, Path]) -> None:
    found = snapshot_statistics(load_translator(closed_form_models["copy"]), PAIRS, GOLD)
    assert min(min(layer) for layer in (*found["aer"], *found["aer_read"])) == 0


def test_the_command_measures_every_snapshot_of_every_seed(
    runs: tuple[Path, Path], command: list[str]
) -> None:
    values = measured(runs[0], command, "--seeds", runs[1])
    assert [each["name"] for each in values["runs"]] == ["a", "b"]
    own, other = runs_of(values)
    assert (own.name, other.name) == ("a", "b")
    assert own.steps == STEPS
    for i, step in enumerate(STEPS):
        found = load_snapshot(runs[0], step)
        pairs = [Translator(found.model, found.tokenizer).force(*each) for each in number_pairs(4)]
        nats = [-value for each in pairs for value in each.log_probs]
        assert own.loss[i] == pytest.approx(np.mean(nats), abs=1e-3)
    assert own.previous["encoder"].shape == (4, 2, 4)
    assert own.errors.shape == (4, 3, 4)


def test_seeds_of_other_steps_and_models_without_snapshots_are_refused(
    runs: tuple[Path, Path],
    command: list[str],
    closed_form_models: dict[str, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    (runs[1] / "snapshots" / "step-0000000.safetensors").unlink()
    assert main([*command, "--model", str(runs[0]), "--seeds", str(runs[1])]) == 2
    assert "snapshots of other steps" in capsys.readouterr().err
    assert main([*command, "--model", str(closed_form_models["copy"])]) == 2
    assert "train with --snapshots" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("holds", "expected"),
    [((0, 1, 0, 1), 8), ((1, 1, 1, 1), 1), ((1, 1, 1, 0), None), ((0, 0, 1, 1), 4)],
)
def test_something_has_appeared_from_the_step_on_from_which_it_lasts(
    holds: tuple[int, ...], expected: int | None
) -> None:
    assert first_lasting((1, 2, 4, 8), [bool(each) for each in holds]) == expected


@pytest.mark.parametrize(
    "run",
    [each for each in BUNDLED.iterdir() if each.is_dir() and snapshot_steps(each)],
    ids=lambda path: path.name,
)
def test_a_bundled_run_has_its_own_statistics_with_two_more_seeds_and_is_small(run: Path) -> None:
    found = read_json(run / BIRTH_FILE)
    assert found[SNAPSHOTS] == hashes(run)
    assert len(found["runs"]) >= 3
    assert sum(each.stat().st_size for each in (run / "snapshots").iterdir()) <= 4_000_000
    assert len(json.dumps(found)) < 200_000
