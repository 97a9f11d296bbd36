"""Queries and keys in the balanced basis against whole matrices and every score; the sink of a head."""

from __future__ import annotations

import numpy as np
import pytest
from random_models import random_translator

from explorer.lenses.circuits import bases, points, sink
from explorer.lenses.measures.stream import UnmeasuredError
from transformer.config import AttentionKind
from transformer.hooks import Capture

KINDS = ENCODER, DECODER, CROSS = tuple(AttentionKind)
TEXTS = ("one two three four", "five six", "seven eight nine ten one")


@pytest.fixture(scope="module", params=["pre", "post"])
def translator(request, tokenizer):
    return random_translator(tokenizer, request.param)


@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_are_as_long_as_the_singular_values_say(translator, kind):
    attention, size = translator.model.attention(kind, 1), translator.config.d_head
    query, key = (
        each.weight.detach().double()[size : 2 * size].numpy()
        for each in (attention.q_proj, attention.k_proj)
    )
    a, b = (each.numpy() for each in bases(translator.model, (kind, 1, 1)))
    strengths = np.linalg.svd(query.T @ key, compute_uv=False)[:size]
    for basis, rows in ((a, query), (b, key)):
        np.testing.assert_allclose((basis @ rows) @ (basis @ rows).T, np.diag(strengths), atol=1e-8)
    np.testing.assert_allclose(a.T @ b, np.eye(size), atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_the_plane_holds_the_share_of_the_scores_that_it_says(translator, kind):
    runs = [translator.translate(text, max_length=9) for text in TEXTS]  # it never ends by itself
    which = (kind, 1 if kind is ENCODER else 2, 3)
    found = points(translator.model, runs, which)
    a, b = (each.numpy() for each in bases(translator.model, which))
    rows, drawn, at, to = [], [], 0, 0  # (directions, keys) parts of each row's scores, without their mean
    for run in runs:
        view = run.head(*which)
        q, k = view.query @ a.T, view.key @ b.T
        np.testing.assert_allclose(q @ k.T, view.query @ view.key.T, atol=1e-4)
        for row, mask in enumerate(view.mask):
            seen = (q[row] * k)[mask]
            rows.append((seen - seen.mean(0)).T)
            plane = (found.keys[to : to + len(k)] @ found.queries[at + row])[mask]
            drawn.append(plane - plane.mean())
        at, to = at + len(q), to + len(k)
    every = np.concatenate(rows, 1)

    def held(*axes):
        return 1 - ((every.sum(0) - every[[*axes]].sum(0)) ** 2).sum() / (every.sum(0) ** 2).sum()

    size = translator.config.d_head
    np.testing.assert_allclose(np.concatenate(drawn), every[[*found.axes]].sum(0), atol=1e-3)
    np.testing.assert_allclose(found.keys.mean(0), 0, atol=1e-5)
    assert found.share == pytest.approx(held(*found.axes), abs=1e-5)
    assert found.share >= max(held(i, j) for i in range(size) for j in range(i)) - 1e-6


def test_rotary_positions_are_refused_and_a_bias_is_said(tokenizer):
    turned, biased = (random_translator(tokenizer, positions=name) for name in ("rotary", "t5"))
    run = [turned.translate(TEXTS[0])]
    with pytest.raises(UnmeasuredError, match="no one plane"):
        points(turned.model, run, (ENCODER, 0, 0))
    assert points(turned.model, run, (CROSS, 0, 0)).left_out == ""
    assert "bias" in points(biased.model, [biased.translate(TEXTS[0])], (DECODER, 0, 0)).left_out


@pytest.mark.parametrize("kind", KINDS)
def test_a_sink_names_its_token_counts_its_rows_and_finds_what_stands_out(tokenizer, translator, kind):
    residual, shares = Capture(residual=True), list[float]()
    runs = [translator.translate(text, capture=residual) for text in TEXTS[:2]]
    found = sink(translator, runs, (kind, 1, 2), shares.append)
    assert found.token == ("<s>" if kind is DECODER else "</s>")
    assert found.rows == sum(len(run.target_ids) for run in runs)
    assert shares == [0.5, 1]
    outlying = random_translator(tokenizer, "post")
    outlying.model.embedding.weight.data[outlying.config.eos_id, 3] = 500
    runs = [outlying.translate(text, capture=residual) for text in TEXTS[:2]]
    assert sink(outlying, runs, (ENCODER, 0, 0)).outliers == (3,)
