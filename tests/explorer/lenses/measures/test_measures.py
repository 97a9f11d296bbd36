"""Every measure against an independent computation: NumPy, other interventions, finite differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from random_models import random_translator

from explorer.lenses.measures.attribution import attribution
from explorer.lenses.measures.carried import carried
from explorer.lenses.measures.effect import WAYS, Cut, Effects, effect
from explorer.lenses.measures.gradients import saliency
from explorer.lenses.measures.score_parts import score_parts
from explorer.lenses.measures.stream import UnmeasuredError, parts
from transformer import Capture, interventions
from transformer.model.encodings.positions import REGISTRY
from transformer.model.sites import AttentionKind
from transformer.runs.batched import Passes, RowChanges, Swap
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator

TEXT = "one two three nine"
BUNDLED = Path(__file__).parents[4] / "assets" / "models" / "en-de"
MODELS = [("pre", name) for name in REGISTRY] + [("post", "sinusoidal"), ("post", "t5")]
Run = tuple[Translator, Translation]


@pytest.fixture(scope="module", params=MODELS, ids=lambda each: " ".join(each))
def run(request: pytest.FixtureRequest, translator: Translator) -> Run:
    norm, positions = request.param
    model = random_translator(translator.tokenizer, norm, positions)
    return model, model.force(TEXT, "two one four", capture=Capture(residual=True))


def logits(run: Run, step: int) -> torch.Tensor:
    model, translation = run
    ids = torch.tensor([[*model.ids(translation.source_text), model.config.eos_id]])
    read = torch.tensor([[model.config.bos_id, *translation.target_ids[:-1]]])
    with torch.inference_mode():
        return model.model(ids, read)[0, step]


@pytest.mark.parametrize("against", [None, 6])
def test_a_logit_is_the_sum_of_what_was_written(run: Run, against: int | None):
    model, translation = run
    found = attribution(model.model, translation, 2, 9, against)
    own = logits(run, 2)
    expected = float(own[9] - (0.0 if against is None else own[against]))
    assert found.total == pytest.approx(expected, abs=1e-3)
    assert found.audit.passed
    assert found.values.sum() == pytest.approx(expected, abs=1e-3)
    for kind, heads in found.heads.items():
        site = model.config.sites[kind]
        own_heads = [
            value
            for writer, value in zip(found.writers, found.values, strict=True)
            if writer.head is not None and writer.what == site.name
        ]
        np.testing.assert_allclose(np.ravel(heads), own_heads, atol=1e-4)


def test_two_ways_to_attribute_agree(run: Run):
    """Forwards, the parts of the stream; backwards, the direction of the logit at every writer."""
    model, translation = run
    names, found = parts(model.model, translation, "decoder")
    weight, _ = model.model.projection
    forwards = dict(zip(names, (found[:, 1] @ weight[7].detach().double()).tolist(), strict=True))
    backwards = attribution(model.model, translation, 1, 7)
    for writer, value in zip(backwards.writers, backwards.values, strict=True):
        if writer.what != "biases":
            assert forwards[writer] == pytest.approx(float(value), abs=1e-4), str(writer)


def test_parts_sum_to_what_every_sublayer_reads(run: Run):
    model, translation = run
    for side, stack in model.config.stacks.items():
        for sublayer in stack.passed():
            _, found = parts(model.model, translation, side, sublayer)
            read = translation.stream(sublayer).read.double()
            torch.testing.assert_close(found.sum(0), read, atol=1e-4, rtol=1e-4)


def test_what_a_key_carried_by_hand(run: Run):
    model, translation = run
    for kind in model.config.sites:
        found, head = carried(model.model, translation, kind, 1, 1), 1
        attention = model.model.attention(kind, 1)
        size = attention.v_proj.out_features // attention.n_heads
        rows = slice(head * size, (head + 1) * size)
        site = model.config.sites[kind]
        read = translation.stream(site.sublayer(1)).read
        sources = read if site.own_keys else _memory(run)
        w_v, w_o = attention.v_proj.weight[rows].detach(), attention.out_proj.weight[:, rows].detach()
        own = (sources @ w_v.T @ w_o.T).norm(dim=-1).numpy()
        np.testing.assert_allclose(found.values, own, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(
            found.norms, translation.weights(kind, 1, head) * own, rtol=1e-3, atol=1e-4
        )
        assert found.audit.passed
        bias = attention.v_proj.bias[rows].detach() @ w_o.T
        assert found.bias == pytest.approx(float(bias.norm()), rel=1e-3)


def _memory(run: Run) -> torch.Tensor:
    model, translation = run
    ids = torch.tensor([[*model.ids(translation.source_text), model.config.eos_id]])
    with torch.inference_mode():
        return model.model.encode(ids)[0]


def test_a_score_is_the_sum_of_its_pairs(run: Run):
    model, translation = run
    for kind in model.config.sites:
        scores = translation.attention.scores(kind, 1, 0)
        for query, key in ((2, 1), (0, 0), (3, 2)):
            found = score_parts(model.model, translation, (kind, 1, 0), query, key)
            assert found.audit.passed
            assert found.values.sum() + found.bias == pytest.approx(float(scores[query, key]), abs=1e-3)
            assert found.values.shape == (len(found.queries), len(found.keys))


def test_a_hidden_key_is_what_a_row_without_its_weight_gives(run: Run):
    model, translation = run
    for kind in (kind for kind in model.config.sites if kind is not AttentionKind.ENCODER):
        found = effect(model, translation, kind, 1, 0, rows=[2])
        assert np.isnan(found[[0, 1, 3]]).all()
        for key in (0, 1):
            change = interventions.set_row(kind, 1, 0, 2, {key: 0.0})
            changed = model.force(translation.source_text, translation.text, interventions=[change])
            expected = changed.log_probs[2] - translation.log_probs[2]
            assert found[2, key] == pytest.approx(expected, abs=2e-4)


def test_a_key_hidden_in_every_layer_is_the_mask_s_intervention(run: Run):
    model, translation = run
    found = Effects(model, translation).of([(Cut(AttentionKind.CROSS, (1,)),)])[0]
    changed = model.force(translation.source_text, translation.text, interventions=[interventions.hide(1)])
    np.testing.assert_allclose(
        found.numpy(), np.subtract(changed.log_probs, translation.log_probs), atol=2e-4
    )


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_a_zeroed_value_and_a_mean_one_by_hand(run: Run, kind: str):
    """The head's output is computed by hand, and put in by patching rows of W_O's input."""
    model, translation = run
    if AttentionKind(kind) not in model.config.sites:
        pytest.skip("no such attention")
    record = translation.attention.layer(kind, 1)
    weights, value, row, key = record.weights(0), record.value[0], 2, 1
    seen = record.mask()[row]
    for way in ("zeroed", "mean"):
        gone = weights[row, key] * value[key]
        instead = weights[row, key] * value[seen].mean(0) if way == "mean" else 0.0
        found = effect(model, translation, kind, 1, 0, way, rows=[row])[row, key]
        vector = record.output[0, row] - gone + instead
        expected = _patched(run, kind, row, vector) - translation.log_probs[row]
        assert found == pytest.approx(expected, abs=2e-4)


def _patched(run: Run, kind: str, row: int, vector: torch.Tensor) -> float:
    model, translation = run
    ids = [*model.ids(translation.source_text), model.config.eos_id]
    passes = Passes(model.model, ids, translation.target_ids, RowChanges)
    place = interventions.head_output(kind, 1, 0)
    return float(passes.log_probs([[Swap(place, vector, row)]])[0, row])


def test_a_word_left_out_is_a_translation_without_it(run: Run):
    model, translation = run
    found = Effects(model, translation).left_out([1])
    changed = model.force(
        translation.source_text, translation.text, interventions=[interventions.drop_source(1)]
    )
    np.testing.assert_allclose(
        found.numpy(), np.subtract(changed.log_probs, translation.log_probs), atol=2e-4
    )


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


def test_gradients_against_finite_differences(run: Run):
    model, translation = run
    found = saliency(model, translation, 2, 9, 6, integrated=False)
    own = logits(run, 2)
    assert found.total == pytest.approx(float(own[9] - own[6]), abs=1e-3)
    from transformer.runs.batched import Passes  # noqa: F401

    for side, values in (("encoder", found.source), ("decoder", found.prefix)):
        for place in (0, 1):
            assert values[place] == pytest.approx(_slope(run, side, place), abs=2e-2, rel=5e-2)


def _slope(run: Run, side: str, place: int, small: float = 1e-2) -> float:
    """Change of z_9 − z_6 if a token's embedding is a little longer."""
    from transformer.model.watching.observer import Bystander

    model, translation = run

    class Longer(Bystander):
        def __init__(self, share: float) -> None:
            self.share = share

        def embedding(self, entered):
            total = entered.total.clone()
            if entered.side == side:
                total[:, place] += self.share * entered.tokens[:, place]
            return total

    ids = torch.tensor([[*model.ids(translation.source_text), model.config.eos_id]])
    read = torch.tensor([[model.config.bos_id, *translation.target_ids[:2]]])
    ends = []
    for share in (0, small, -small):
        with torch.inference_mode():
            memory = model.model.encode(ids, observer=Longer(share))
            features = model.model.decode(read, memory, observer=Longer(share))[0, -1]
            z = model.model.logits(features).double()
        ends.append(float(z[9] - z[6]))
    return (ends[1] - ends[2]) / (2 * small)


def test_integrated_gradients_are_complete(run: Run):
    model, translation = run
    assert saliency(model, translation, 2, 9, 6).audit.passed


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
