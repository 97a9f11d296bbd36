"""Trials against plain loops over runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from random_models import random_translator

from explorer.lenses.heads.survey import Line, Surveyor
from explorer.lenses.measures.alti import alti
from transformer.config import AttentionKind
from transformer.hooks import Capture

LINES = [Line("one two three four", "eins zwei drei vier"), Line("two one four", "zwei drei eins")]
SWAPPED = ["three two one four", "four one two"], ["drei zwei eins vier", "eins drei zwei"]
KINDS = tuple(AttentionKind)


@pytest.fixture(scope="module", params=["pre", "post"])
def translator(request, tokenizer):
    return random_translator(tokenizer, request.param)


@pytest.fixture(scope="module")
def survey(translator):
    surveyor = Surveyor(translator, LINES)
    list(surveyor.run())
    return surveyor.survey()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_stay_in_place_or_go_along(translator, survey, kind):
    sums, parts = np.zeros(4), []
    for number, line in enumerate(LINES):
        text, target = line.source, line.target
        before = translator.force(text, target)
        if kind is AttentionKind.DECODER:
            after = translator.force(text, SWAPPED[1][number])
            one, other = 1, 3  # behind the start token
        else:
            after = translator.force(SWAPPED[0][number], before.target_ids)
            one, other = 0, 2
        old, new = (each.head(kind, 1, 2).weights for each in (before, after))
        to = {one: other, other: one}
        parts.append(sums.copy())
        for row in range(old.shape[0]):
            for key in range(old.shape[1]):
                self_attention = kind is not AttentionKind.CROSS
                if key not in to and not (self_attention and row in to):
                    continue
                along = old[to.get(row, row) if self_attention else row, to.get(key, key)]
                sums += (min(old[row, key], new[row, key]), old[row, key], min(along, new[row, key]), along)
    means = survey.means[kind]
    assert means["stays"][1, 2] == pytest.approx(sums[0] / sums[1], abs=1e-4)
    assert means["follows"][1, 2] == pytest.approx(sums[2] / sums[3], abs=1e-4)
    each = np.diff([*parts, sums], axis=0)  # of every sentence
    rest = [(each[:, i] - sums[i] / sums[i + 1] * each[:, i + 1]) / sums[i + 1] for i in (0, 2)]
    error = math.sqrt(2 * ((rest[0] - rest[1]) ** 2).sum())
    found = means.get("stays_error", {(1, 2): None})[1, 2]
    assert found == (None if kind is AttentionKind.DECODER else pytest.approx(error, abs=1e-4))


def test_the_usual_share_of_the_source_is_that_of_all_inner_steps(translator, survey):
    shares = [
        float(row.sum())
        for line in LINES
        for row in alti(
            translator.model, translator.force(line.source, line.target, capture=Capture(residual=True))
        ).source[1:-1]
    ]
    assert survey.usual == pytest.approx(np.percentile(shares, (5, 50, 95)), abs=1e-5)
