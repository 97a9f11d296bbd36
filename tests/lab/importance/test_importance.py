"""Losses without heads against interventions, gradients against differences, and what pruning ends at."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from changes import changeable
from corpus import number_pairs, write_pairs

from lab.__main__ import main
from lab.importance.ablation import Forced, Scaled, all_heads, switched_off, translated
from lab.studies.importance import pruning
from transformer import interventions as do
from transformer.model.sites import AttentionKind
from transformer.runs.bootstrap import ratio
from transformer.storage.description import IMPORTANCE_FILE, model_digests
from transformer.storage.files import read_json
from transformer.text.pairs import SentencePair

PAIRS = [
    SentencePair("one two three", "two one"),
    SentencePair("four", "five four three nine"),
    SentencePair("six eight nine ten", "ten"),
]


@pytest.fixture(scope="module")
def ready(tokenizer):
    return changeable(tokenizer)


@pytest.mark.parametrize("kind", AttentionKind)
@pytest.mark.parametrize("by", ["zero", "mean"])
def test_a_loss_without_a_head_is_that_of_an_ablation(ready, kind, by):
    forced = Forced(ready, PAIRS)
    found = forced.losses(switched_off(ready, [(kind, 1, 2)], by), kind is AttentionKind.ENCODER)
    for row, pair in enumerate(PAIRS):
        run = ready.force(
            pair.source, pair.target, interventions=[do.ablate(kind, 1, 2, by=by)], capture=False
        )
        assert found[row, 0] == pytest.approx(-sum(run.log_probs), abs=1e-4)
        assert found[row, 1] == len(run.log_probs)


def test_the_gradient_measure_is_the_slope_of_each_sentence(ready):
    forced, heads = Forced(ready, PAIRS), [(AttentionKind.ENCODER, 0, 1), (AttentionKind.CROSS, 2, 3)]
    found = forced.sensitivity(heads)

    def losses(head, factor: float) -> np.ndarray:
        factors = torch.ones(ready.config.n_heads)
        factors[head[2]] = factor
        return ratio(forced.losses(Scaled({head[:2]: factors})))

    for head, value in zip(heads, found, strict=True):
        slopes = (losses(head, 1.01) - losses(head, 0.99)) / 0.02
        assert value == pytest.approx(np.abs(slopes).mean(), rel=0.02, abs=1e-5)


def test_a_head_that_is_off_is_ranked_with_what_is_left(ready):
    forced, heads = Forced(ready, PAIRS), all_heads(ready)
    gone = heads[:4]
    found = forced.sensitivity(heads[4:], gone)
    assert found.shape == (len(heads) - 4,)
    assert not np.allclose(found, forced.sensitivity(heads[4:]))


def test_curves_begin_with_the_whole_model_and_end_without_a_head(ready):
    forced, heads = Forced(ready, PAIRS), all_heads(ready)
    found = pruning(forced, PAIRS[:2], 2)
    whole = float(ratio(forced.losses().sum(0)))
    none = float(ratio(forced.losses(switched_off(ready, heads)).sum(0)))
    assert found["heads"][0] == 0
    assert found["heads"][-1] == len(heads)
    for curve in (found["ranked"], *found["random"]):
        assert curve[0] == pytest.approx(whole, abs=1e-4)
        assert curve[-1] == pytest.approx(none, abs=1e-4)
    assert len({tuple(each) for each in found["order"]}) == len(heads)
    assert len(found["random"]) == 2
    assert found["random"][0] != found["random"][1]
    assert len(found["bleu"]["ranked"]) == len(found["heads"])


def test_translations_without_heads_are_those_of_the_changed_model(ready):
    off = all_heads(ready)[2:30:5]
    changes = [do.ablate(*head) for head in off]
    texts = [pair.source for pair in PAIRS]
    expected = [ready.translate(text, interventions=changes, capture=False).text for text in texts]
    assert [*translated(ready, texts, switched_off(ready, off))] == expected


def test_the_command_writes_a_file_beside_the_model(ready, tmp_path, closed_form_models):
    directory = tmp_path / "model"
    directory.mkdir()
    for path in closed_form_models["copy"].iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    data = write_pairs(tmp_path / "pairs.tsv", number_pairs(4, seed=1))
    asked = ["importance", "--model", str(directory), "--data", str(data), "--translations", "2"]
    assert main([*asked, "--orders", "1"]) == 0
    found = read_json(directory / IMPORTANCE_FILE)
    assert found["digests"] == model_digests(directory)
    assert set(found["alone"]) == {"zero"}
    assert set(found["gradient"]) == {str(kind) for kind in AttentionKind}
    worst = max(
        (cell["value"], kind)
        for kind, layers in found["alone"]["zero"].items()
        for layer in layers
        for cell in layer
    )
    assert worst[1] == "cross"
