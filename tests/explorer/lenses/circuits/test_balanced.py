"""Queries and keys in the balanced basis against whole matrices and against every score."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from random_models import random_translator

from explorer.lenses.circuits.balanced import bases, points
from explorer.lenses.measures.stream import UnmeasuredError
from transformer.config import AttentionKind

KINDS = tuple(AttentionKind)
TEXTS = ("one two three four", "five six", "seven eight nine ten one")


@pytest.fixture(scope="module", params=["pre", "post"])
def translator(request, tokenizer):
    return random_translator(tokenizer, request.param)


@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_are_as_long_as_the_singular_values_say(translator, kind):
    attention = translator.model.attention(kind, 1)
    size = translator.config.d_head
    query, key = (
        each.weight.detach().double()[size : 2 * size] for each in (attention.q_proj, attention.k_proj)
    )
    a, b = bases(translator.model, kind, 1, 1)
    strengths = np.linalg.svd((query.T @ key).numpy(), compute_uv=False)[:size]
    for basis, rows in ((a, query), (b, key)):
        gram = (basis @ rows) @ (basis @ rows).T
        np.testing.assert_allclose(gram.numpy(), np.diag(strengths), atol=1e-8)
    np.testing.assert_allclose((a.T @ b).numpy(), np.eye(size), atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_the_plane_holds_the_share_of_the_scores_that_it_says(translator, kind):
    runs = [translator.translate(text, max_length=9) for text in TEXTS]  # it never ends by itself
    found = points(translator.model, runs, (kind, 2, 3) if kind != KINDS[0] else (kind, 1, 3))
    layer = 1 if kind is KINDS[0] else 2
    a, b = bases(translator.model, kind, layer, 3)

    def left(axes):
        whole, missed, at, to = 0.0, 0.0, 0, 0
        for run in runs:
            view = run.head(kind, layer, 3)
            q, k = (torch.tensor(each).double() for each in (view.query, view.key))
            exact = (a @ q.T).T, (b @ k.T).T
            np.testing.assert_allclose((exact[0] @ exact[1].T).numpy(), (q @ k.T).numpy(), atol=1e-4)
            for row, mask in zip(range(len(q)), view.mask, strict=True):
                score = (q[row] @ k.T).numpy()[mask]
                plane = sum(exact[0][row, i] * exact[1][:, i] for i in axes).numpy()[mask]
                whole += ((score - score.mean()) ** 2).sum()
                missed += (((score - score.mean()) - (plane - plane.mean())) ** 2).sum()
                if axes == found.axes:  # differences within a row are those of the points
                    drawn = found.keys[to : to + len(k)] @ found.queries[at + row]
                    np.testing.assert_allclose(
                        drawn[mask] - drawn[mask].mean(), plane - plane.mean(), atol=1e-3
                    )
            at, to = at + len(q), to + len(k)
        return 1 - missed / whole

    assert found.share == pytest.approx(left(found.axes), abs=1e-5)
    size = translator.config.d_head
    assert found.share >= max(left((i, j)) for i in range(size) for j in range(i)) - 1e-6


def test_rotary_positions_are_refused_and_a_bias_is_said(tokenizer):
    turned = random_translator(tokenizer, positions="rotary")
    run = [turned.translate(TEXTS[0])]
    with pytest.raises(UnmeasuredError, match="no one plane"):
        points(turned.model, run, (AttentionKind.ENCODER, 0, 0))
    assert points(turned.model, run, (AttentionKind.CROSS, 0, 0)).left_out == ""
    biased = random_translator(tokenizer, positions="t5")
    run = [biased.translate(TEXTS[0])]
    assert "bias" in points(biased.model, run, (AttentionKind.DECODER, 0, 0)).left_out
