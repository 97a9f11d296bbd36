"""Lenses on decoders that people have: shared keys, normalised heads, both sub-layers from one
stream; each proves itself, and sums are what the head wrote."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decoder_models import END, KINDS, write_decoder

from explorer.lenses.circuits import bases, points, sink
from explorer.lenses.heads.statistics import NAMES, HeadsOfKind
from explorer.lenses.heads.survey import Line
from explorer.lenses.heads.surveyor import Profiler
from explorer.lenses.inside.inside import look_inside
from explorer.lenses.inside.parts import final_norm_part, logit_lens, norm_part
from explorer.lenses.measures.attribution import attribution
from explorer.lenses.measures.effect import effect
from explorer.lenses.measures.stream import UnmeasuredError, carried, score_parts, value_zeroing
from transformer import Capture, Translation, Translator, load_language_model
from transformer import interventions as do
from transformer.config import AttentionKind

TEXT = "the old house\nand two dogs"


@pytest.fixture(scope="module", params=KINDS, ids=list(KINDS))
def run(request: Any, tmp_path_factory: Any) -> tuple[Translator, Translation]:
    directory: Path = tmp_path_factory.mktemp("decoder")
    write_decoder(directory, request.param)
    translator = load_language_model(directory, "cpu")
    return translator, translator.force(TEXT, capture=Capture(residual=True))


def test_inside_a_head_every_number_follows_from_the_weights(
    run: tuple[Translator, Translation],
) -> None:
    (translator, translation) = run
    for layer, head in np.ndindex(translation.config.sizes["decoder"]):
        inside = look_inside(translator.model, translation, ("decoder", layer, head), 4)
        wrong = [check for check in inside.audit.checks if not check.passed]
        assert not wrong


def test_a_score_is_the_sum_of_what_wrote_query_and_key(
    run: tuple[Translator, Translation],
) -> None:
    (translator, translation) = run
    heads = translation.config.n_heads
    for head in range(heads):
        parts = score_parts(translator.model, translation, ("decoder", 2, head), 5, 3)
        assert parts.audit.passed
        assert parts.values.sum() == pytest.approx(parts.score, abs=1e-3)


def test_what_keys_carry_sums_to_what_a_head_writes(run: tuple[Translator, Translation]) -> None:
    (translator, translation) = run
    for layer, head in np.ndindex(translation.config.sizes["decoder"]):
        assert carried(translator.model, translation, "decoder", layer, head).audit.passed


def test_logits_are_sums_of_their_writers_and_norms_are_the_model_s(
    run: tuple[Translator, Translation],
) -> None:
    (translator, translation) = run
    model = translator.model
    (_, checks) = logit_lens(model, translation, 3)
    for sublayer in translation.config.stacks["decoder"].passed():
        checks += norm_part(model, translation, sublayer, 3).checks
    final = final_norm_part(model, translation, "decoder", 3)
    assert final is not None
    assert all(check.passed for check in (*checks, *final.checks))
    assert attribution(model, translation, 3, translation.target_ids[3]).audit.passed


def test_the_effect_of_a_cell_is_that_of_a_run_that_may_not_see_it(
    run: tuple[Translator, Translation],
) -> None:
    (translator, translation) = run
    hidden = translator.force(TEXT, interventions=[do.mask("decoder", forbid=[(4, 2)], layer=1)])
    moved = hidden.log_probs[4] - translation.log_probs[4]
    effects = effect(translator, translation, "decoder", 1, None, rows=[4], keys=[2])
    assert effects[4, 2] == pytest.approx(moved, abs=1e-5)
    assert abs(moved) > 1e-6


def test_the_end_of_a_text_is_a_key_whose_weight_and_value_are_measured(
    run: tuple[Translator, Translation],
) -> None:
    (translator, _) = run
    ids = [70, 80, 0, 90, 91, 92, 0]
    translation = translator.force(ids, capture=Capture(residual=True))
    keys = translation.read_ids
    reading = HeadsOfKind.of(translation, AttentionKind.DECODER, translator.model.output_projection)
    masses = reading.rows[NAMES.index("eos_mass")][..., 1:]
    ends = [place for place, number in enumerate(keys) if number == 0]
    assert np.allclose(masses, reading.weights[..., 1:, ends].sum(-1), atol=1e-6)
    assert sink(translator, [translation], (AttentionKind.DECODER, 1, 0)).token == END
    profiler = Profiler(AttentionKind.DECODER)
    profiler.add(reading, translation.labels("decoder"))
    assert reading.lengths is not None
    rest = [place for place in range(len(keys)) if place not in ends]
    ratio = reading.lengths[..., ends].mean(-1) / reading.lengths[..., rest].mean(-1)
    means = profiler.profile([Line("")]).means
    assert np.allclose(means["eos_value"], ratio, rtol=1e-5)


def test_a_key_whose_value_is_zero_moves_the_rows_that_see_it(
    run: tuple[Translator, Translation],
) -> None:
    (translator, translation) = run
    distances = value_zeroing(translator.model, translation, "decoder", 1)
    mask = translation.mask("decoder", 1, 0)
    assert (distances[~mask] < 1e-6).all()
    assert (distances[mask] > 0).any()


def test_the_balanced_basis_holds_products_or_says_why_not(
    run: tuple[Translator, Translation],
) -> None:
    (translator, translation) = run
    place = ("decoder", 1, 1)
    if translation.config.positions == "rotary":
        with pytest.raises(UnmeasuredError, match=r"Rotary"):
            points(translator.model, [translation], place)  # type: ignore[arg-type]
        return
    (a, b) = bases(translator.model, place)  # type: ignore[arg-type]
    record = translation.trace.layer(*place)
    query = record.query[1].double()
    key = record.keys(1).double()
    assert np.allclose((query @ a.T) @ (key @ b.T).T, query @ key.T, atol=1e-4)
