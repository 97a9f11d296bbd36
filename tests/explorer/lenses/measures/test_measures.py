"""What measures prove of themselves, and what they refuse; their numbers are in test_forgeries.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from random_models import random_translator

from explorer.lenses.measures.alti import alti
from explorer.lenses.measures.attribution import attribution
from explorer.lenses.measures.carried import carried
from explorer.lenses.measures.effect import WAYS, Effects, effect
from explorer.lenses.measures.gradients import saliency
from explorer.lenses.measures.score_parts import score_parts
from explorer.lenses.measures.stream import UnmeasuredError
from transformer import Capture, interventions
from transformer.config import AttentionKind
from transformer.encodings import REGISTRY
from transformer.run import Translation
from transformer.translator import Translator

TEXT = "one two three nine"
BUNDLED = Path(__file__).parents[4] / "assets" / "models" / "en-de"
MODELS = [("pre", name) for name in REGISTRY] + [("post", "sinusoidal"), ("post", "t5")]
Run = tuple[Translator, Translation]


@pytest.fixture(scope="module", params=MODELS, ids=lambda each: " ".join(each))
def run(request: pytest.FixtureRequest, translator: Translator) -> Run:
    norm, positions = request.param
    model = random_translator(translator.tokenizer, norm, positions)
    return model, model.force(TEXT, "two one four", capture=Capture(residual=True))


def test_every_sum_is_audited(run: Run):
    model, translation = run
    for kind in model.config.sites:
        assert carried(model.model, translation, kind, 1, 1).audit.passed
        assert score_parts(model.model, translation, (kind, 1, 0), 2, 1).audit.passed
    assert attribution(model.model, translation, 2, 9, 6).audit.passed
    assert saliency(model, translation, 2, 9, 6).audit.passed
    found = alti(model.model, translation)
    assert found.audit.passed
    np.testing.assert_allclose(found.source.sum(1) + found.prefix.sum(1), 1, atol=1e-5)


def test_one_token_of_the_source_is_left_or_nothing_is(run: Run):
    effects, every = Effects(*run), [*range(len(run[1].source_tokens))]
    assert torch.isfinite(effects.left_out(every[1:-1])).all()
    with pytest.raises(UnmeasuredError, match="no source is left"):
        effects.left_out(every[:-1])


def test_the_only_key_of_a_query_cannot_be_hidden(run: Run):
    model, translation = run
    if AttentionKind.DECODER in model.config.sites:
        assert np.isnan(effect(model, translation, "decoder", 0, 0, rows=[0])[0, 0])


def test_encoder_cells_need_a_step(run: Run):
    model, translation = run
    with pytest.raises(UnmeasuredError, match="name the step"):
        effect(model, translation, "encoder", 0, 0)
    for way in WAYS:
        found = effect(model, translation, "encoder", 0, None, way, step=1, rows=[1])
        assert np.isfinite(found[1]).all()
        assert np.abs(found[1]).max() > 0


def test_a_changed_run_is_refused(run: Run):
    model, translation = run
    changed = model.force(
        TEXT, translation.text, interventions=[interventions.hide(1)], capture=Capture(residual=True)
    )
    for ask in (
        lambda: attribution(model.model, changed, 0, 5),
        lambda: carried(model.model, changed, "cross", 0, 0),
        lambda: Effects(model, changed),
        lambda: saliency(model, changed, 0, 5),
        lambda: score_parts(model.model, changed, ("cross", 0, 0), 0, 0),
    ):
        with pytest.raises(UnmeasuredError, match="without changes"):
            ask()


def test_progress_is_told_and_may_end_a_measurement(run: Run):
    model, translation = run
    told: list[float] = []
    effect(model, translation, "cross", 1, 0, tell=told.append)
    saliency(model, translation, 1, 9, 6, tell=told.append)
    assert 1.0 in told
    assert all(0 < share <= 1 for share in told)

    def leave(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        saliency(model, translation, 1, 9, 6, tell=leave)
