"""Queries and keys in the balanced basis against whole matrices and every score; the sink of a head."""

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
def model(request, tokenizer):
    return random_translator(tokenizer, request.param)


@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_are_as_long_as_the_singular_values_and_the_plane_holds_the_share_that_it_says(
    model, kind
):
    head, size = (kind, 1 if kind is ENCODER else 2, 3), model.config.d_head
    attention = model.model.attention(*head[:2])
    query, key = (
        side.weight.detach().double()[3 * size :].numpy() for side in (attention.q_proj, attention.k_proj)
    )
    a, b = (each.numpy() for each in bases(model.model, head))
    strengths = np.linalg.svd(query.T @ key, compute_uv=False)[:size]
    for basis, rows in ((a, query), (b, key)):
        np.testing.assert_allclose((basis @ rows) @ (basis @ rows).T, np.diag(strengths), atol=1e-8)
    np.testing.assert_allclose(a.T @ b, np.eye(size), atol=1e-8)

    runs = [model.translate(text, max_length=9) for text in TEXTS]  # it never ends by itself
    found = points(model.model, runs, head)
    rows, drawn, at, to = [], [], 0, 0  # (directions, keys) parts of each row's scores, without their mean
    for run in runs:
        view = run.head(*head)
        q, k = view.query @ a.T, view.key @ b.T
        for row, mask in enumerate(view.mask):
            seen = (q[row] * k)[mask]
            rows.append((seen - seen.mean(0)).T)
            plane = (found.keys[to : to + len(k)] @ found.queries[at + row])[mask]
            drawn.append(plane - plane.mean())
        at, to = at + len(q), to + len(k)
    every = np.concatenate(rows, 1)

    def share(*axes):
        return 1 - ((every.sum(0) - every[[*axes]].sum(0)) ** 2).sum() / (every.sum(0) ** 2).sum()

    np.testing.assert_allclose(np.concatenate(drawn), every[[*found.axes]].sum(0), atol=1e-3)
    np.testing.assert_allclose(found.keys.mean(0), 0, atol=1e-5)
    best = max(((i, j) for j in range(size) for i in range(j)), key=lambda axes: share(*axes))
    assert (found.axes, found.share, found.left_out) == (best, pytest.approx(share(*best), abs=1e-5), "")


def test_rotary_positions_and_lacking_rank_are_refused_and_a_bias_is_said(tokenizer):
    turned, biased = (random_translator(tokenizer, positions=name) for name in ("rotary", "t5"))
    run = [turned.translate(TEXTS[0])]
    with pytest.raises(UnmeasuredError, match="no one plane"):
        points(turned.model, run, (ENCODER, 0, 0))
    assert points(turned.model, run, (CROSS, 0, 0)).left_out == ""
    said = points(biased.model, [biased.translate(TEXTS[0])], (DECODER, 0, 0)).left_out
    assert said == "Scores also have a bias of positions, which is left out here."
    biased.model.attention(ENCODER, 0).q_proj.weight.data[1] = 0
    with pytest.raises(UnmeasuredError, match="has not its full rank"):
        bases(biased.model, (ENCODER, 0, 0))
    bases(biased.model, (ENCODER, 0, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_a_sink_names_its_token_counts_its_rows_and_finds_what_stands_out(tokenizer, model, kind):
    residual, shares = Capture(residual=True), list[float]()
    runs = [model.translate(text, capture=residual) for text in TEXTS[:2]]
    found = sink(model, runs, (kind, 1, 2), shares.append)
    assert found.token == ("<s>" if kind is DECODER else "</s>")
    assert found.rows == sum(len(run.target_ids) for run in runs)
    assert shares == [0.5, 1]
    outlying = random_translator(tokenizer, "post")
    outlying.model.embedding.weight.data[outlying.config.eos_id, 3] = 500
    runs = [outlying.translate(text, capture=residual) for text in TEXTS[:2]]
    assert sink(outlying, runs, (ENCODER, 0, 0)).outliers == (3,)
