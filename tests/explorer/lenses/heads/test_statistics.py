"""What statistics say of heads (roles, which open first); circuits and sinks; for rows:
test_forgeries."""

import numpy as np
import pytest
from closed_form import CASES
from random_models import random_translator

from explorer.lenses.circuits import bases, points, sink
from explorer.lenses.heads import roles, statistics
from explorer.lenses.heads.roles import STATISTICS
from explorer.lenses.heads.statistics import (
    HeadsOfKind,
    content_pieces,
    grid,
    kind_sums,
    measure_heads,
)
from explorer.lenses.measures.stream import UnmeasuredError
from explorer.lenses.words.alignment import link_words, score, word_weights
from explorer.lenses.words.groups import SOURCE_LANGUAGES
from explorer.lenses.words.linking import ERRORS, align_gold
from explorer.lenses.words.links import GoldPair
from transformer.config import AttentionKind
from transformer.exports.array_run import run_of
from transformer.hooks import Capture
from transformer.text.words import EOS
from transformer.translator import Translator

KINDS = ENCODER, DECODER, CROSS = tuple(AttentionKind)
NAMES = {statistic.name for statistic in STATISTICS}
SURE = frozenset({(0, 0), (1, 1), (2, 2)})
GOLD = GoldPair(("one", "two", "three"), ("eins", "zwei", "drei"), SURE, SURE)


def test_content_words_are_neither_function_words_nor_punctuation_nor_marks():
    tokens = ("▁The", "▁ti", "red", ".", "▁don", "'", "t", "▁7", EOS)
    content = [
        token
        for token, whole in zip(tokens, content_pieces(tokens, SOURCE_LANGUAGES), strict=True)
        if whole
    ]
    assert content == ["▁ti", "red", "▁7"]


# --- heads.json ----------------------------------------------------------------------------------


def test_every_head_of_every_kind_is_measured_over_all_rows(translator: Translator):
    runs = [
        translator.force("one two three", "eins zwei"),
        translator.force("two", "zwei drei eins"),
    ]
    projections = translator.model.output_projection
    alignments = align_gold(translator, [GOLD])
    measured = measure_heads([kind_sums(run, projections) for run in runs], alignments)
    lacks = {"encoder": set(), "decoder": {"next", "next_mass", "last"}, "cross": {"same_word"}}
    errors = alignments.errors()
    for kind, depth in (("encoder", 2), ("decoder", 3), ("cross", 3)):
        heads = measured["heads"][kind]
        assert [len(row) for row in heads] == [translator.config.n_heads] * depth
        extra = {*errors} if kind == "cross" else set()
        assert {*heads[0][0]} == NAMES - lacks[kind] | extra
        assert measured["default"][kind] == list(statistics.choose_head(heads))
        rows = [HeadsOfKind.of(run, AttentionKind(kind), projections).rows for run in runs]
        for place, name in enumerate(statistics.NAMES):
            if name in lacks[kind]:
                continue
            each = np.concatenate([found[place, 1, 2] for found in rows])
            assert heads[1][2][name] == pytest.approx(np.nanmean(each), abs=1e-4), name
    for name, each in errors.items():
        table = [[head[name] for head in row] for row in measured["heads"]["cross"]]
        np.testing.assert_allclose(table, each, atol=5e-5)
    assert grid(kind_sums(runs[0])[CROSS]) == measure_heads([kind_sums(runs[0])])["heads"]["cross"]


def test_rows_that_see_one_key_are_left_out_and_a_run_needs_its_attention(translator: Translator):
    measured = measure_heads([kind_sums(translator.translate("one", max_length=1))])
    assert all("first" not in head for layer in measured["heads"]["decoder"] for head in layer)
    with pytest.raises(ValueError, match="capture=True"):
        kind_sums(translator.translate("one", capture=False))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_no_numbers_are_left_out_of_their_head_alone(value: float):
    weights = np.random.default_rng(0).dirichlet(np.ones(5), (1, 3, 5)).astype(np.float32)
    usual = HeadsOfKind.of(run_of(weights), ENCODER).sums.means()
    odd = weights.copy()
    odd[0, 0, :, 0] = value
    odd[0, 1, 2:] = value
    means = HeadsOfKind.of(run_of(odd), ENCODER).sums.means()
    assert means.keys() == usual.keys()
    for name, mean in means.items():
        assert np.isnan(mean[0, 0])
        np.testing.assert_allclose(mean[0, 2], usual[name][0, 2], rtol=1e-6)
    assert means["peak"][0, 1] == pytest.approx(weights[0, 1, :2].max(-1).mean())
    assert roles.assign(means, ENCODER)[0, 0] == "mixed"
    odd[:] = value
    assert HeadsOfKind.of(run_of(odd), ENCODER).sums.means() == {}


def test_the_best_aligner_is_the_head_that_translates(solved: Translator):
    case = CASES[solved.name]
    links = frozenset((int(key), row) for row, key in enumerate(case.keys("cross", 0)[:-1]))
    gold = GoldPair(tuple(case.sentence.split()), tuple(case.translation.split()), links, links)
    sums = [kind_sums(solved.force(case.sentence, case.translation))]
    collected = align_gold(solved, [gold])
    found = measure_heads(sums, collected)
    assert found["aligner"] == {"heads": ((0, 0),), "rows": "predicted", "aer": 0}
    assert collected.scores("read")[0][0].aer > 0
    assert "aligner" not in measure_heads(sums)


def test_a_mean_over_heads_is_scored_like_a_head(translator: Translator):
    traced = translator.force("one two three", "eins zwei drei")
    collected = align_gold(translator, [GOLD])
    best, error = collected.best()
    words = (
        translator.cut("one two three").groups(),
        translator.cut("eins zwei drei", "target").groups(),
    )
    maps = np.mean([traced.weights("cross", *head) for head in best.heads], axis=0, keepdims=True)
    (links,) = link_words(word_weights(maps, *words, rows=best.rows))
    assert score([links], [GOLD]).aer == error
    heads = [
        each.aer for rows in ERRORS.values() for layer in collected.scores(rows) for each in layer
    ]
    assert error <= min(heads)


@pytest.mark.parametrize(
    ("heads", "sharp"),
    [
        ([[{"aer": 0.5}, {"aer": 0.2, "eos_mass": 0.8}], [{"aer": 0.3}, {"aer": 0.4}]], False),
        (
            [
                [{"previous": 0.2}, {"previous": 0.9, "first": 0.7}],
                [{"previous": 0.1, "next": 0.6}],
            ],
            False,
        ),
        (
            [
                [{"peak": 0.9, "special_mass": 0.6}, {"peak": 0.8, "first_mass": 0.5}],
                [{"peak": 0.4}],
            ],
            True,
        ),
    ],
)
def test_the_best_aligner_or_the_clearest_pattern_opens_first_but_never_a_head_at_rest(
    heads, sharp
):
    assert statistics.choose_head(heads, sharp) == (1, 0)


# --- roles ---------------------------------------------------------------------------------------

NOTHING = dict.fromkeys(NAMES, np.zeros((1, 2), np.float32)) | {
    "content_chance": np.full((1, 2), 0.4)
}


def of_two(**values: list[float]) -> dict[str, np.ndarray]:
    """Statistics of two heads of one layer."""
    return NOTHING | {name: np.array([pair], np.float32) for name, pair in values.items()}


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (ENCODER, {"previous": [0.49, 0.5]}, ["mixed", "previous token"]),
        (ENCODER, {"next": [1.0, 0.2]}, ["next token", "mixed"]),
        (DECODER, {"same_word": [0.7, 0.0], "first": [0.0, 0.6]}, ["same word", "first or last"]),
        (ENCODER, {"last": [0.2, 0.5]}, ["mixed", "first or last"]),
        (ENCODER, {"special_mass": [0.3, 0.4], "punctuation_mass": [0.1, 0.2]}, ["mixed", "sink"]),
        (CROSS, {"content_mass": [0.5, 0.6]}, ["mixed", "content"]),
        (CROSS, {"content_mass": [0.5, 0.6], "content_chance": [0.0, 0.4]}, ["mixed", "content"]),
        (CROSS, {"same_word": [1.0, 1.0]}, ["mixed", "mixed"]),
        (CROSS, {"aer": [0.41, 0.39], "aer_diagonal": [0.5, 0.5]}, ["mixed", "alignment"]),
        (CROSS, {"aer": [0.0, 0.1], "aer_diagonal": [0.0, 0.0]}, ["alignment", "mixed"]),
        (
            CROSS,
            {"aer": [0.9, 0.3], "aer_read": [0.1, 0.9], "aer_diagonal": [0.5, 0.5]},
            ["alignment"] * 2,
        ),
        (
            *(CROSS, {"aer": [0.1, 0.9], "aer_diagonal": [0.5, 0.5], "content_mass": [1, 1]}),
            ["alignment", "content"],
        ),
        (ENCODER, {"aer": [0.1, 0.1], "aer_diagonal": [0.5, 0.5]}, ["mixed", "mixed"]),
        (
            ENCODER,
            {"previous": [0.6, 0.6], "content_mass": [1, 0]},
            ["previous token", "previous token"],
        ),
    ],
)
def test_a_head_has_the_first_role_whose_threshold_it_reaches(kind, values, expected):
    assert roles.assign(of_two(**values), kind).tolist() == [expected]


def test_what_a_role_says_of_itself_and_of_heads_that_cannot_have_it():
    errors = of_two(aer=[0.9, 0.39], aer_read=[0.1, 0.9])
    assert roles.aligned_by(errors).tolist() == [["reads", "predicts"]]
    assert roles.aligned_by(of_two(aer=[0.4, 0.4], aer_read=[0.4, 0.39])).tolist() == [
        ["predicts", "reads"]
    ]
    assert roles.aligned_by(of_two(aer=[0.4, 0.5])).tolist() == [["predicts", "predicts"]]
    few = {
        name: each
        for name, each in NOTHING.items()
        if name not in ("previous", "next", "last", "same_word")
    }
    assert roles.assign(few, DECODER).tolist() == [["mixed", "mixed"]]
    shown = roles.shows("mixed", of_two(previous=[0.4, 0.5]), ENCODER)
    assert shown.tolist() == [[pytest.approx(1.25), 1]]
    assert roles.keeps("mixed", shown).tolist() == [[True, False]]
    for role in roles.ROLES.values():
        numbers = {f"{role.threshold:.2f}".rstrip("0"), f"{100 * role.threshold:.0f} %"}
        assert any(number in role.definition for number in numbers), role.name


# --- circuits and sinks --------------------------------------------------------------------------

TEXTS = ("one two three four", "five six", "seven eight nine ten one")


@pytest.fixture(scope="module", params=["pre", "post"])
def model(request, tokenizer):
    return random_translator(tokenizer, request.param)


@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_are_as_long_as_the_singular_values_and_the_plane_holds_the_share_that_it_says(
    model, kind
):
    head = (kind, 1 if kind is ENCODER else 2, 3)
    size = model.config.d_head
    attention = model.model.attention(*head[:2])
    query, key = (
        side.weight.detach().double()[3 * size :].numpy()
        for side in (attention.q_proj, attention.k_proj)
    )
    a, b = (base.numpy() for base in bases(model.model, head))
    strengths = np.linalg.svd(query.T @ key, compute_uv=False)[:size]
    for basis, rows in ((a, query), (b, key)):
        np.testing.assert_allclose((basis @ rows) @ (basis @ rows).T, np.diag(strengths), atol=1e-8)
    np.testing.assert_allclose(a.T @ b, np.eye(size), atol=1e-8)

    runs = [model.translate(text, max_length=9) for text in TEXTS]  # it never ends by itself
    found = points(model.model, runs, head)
    rows, drawn, at, to = (
        [],
        [],
        0,
        0,
    )  # (directions, keys) parts of each row's scores, without their mean
    for run in runs:
        view = run.head(*head)
        q = view.query @ a.T
        k = view.key @ b.T
        for row, mask in enumerate(view.mask):
            seen = (q[row] * k)[mask]
            rows.append((seen - seen.mean(0)).T)
            plane = (found.keys[to : to + len(k)] @ found.queries[at + row])[mask]
            drawn.append(plane - plane.mean())
        at = at + len(q)
        to = to + len(k)
    every = np.concatenate(rows, 1)

    def share(*axes):
        return 1 - ((every.sum(0) - every[[*axes]].sum(0)) ** 2).sum() / (every.sum(0) ** 2).sum()

    np.testing.assert_allclose(np.concatenate(drawn), every[[*found.axes]].sum(0), atol=1e-3)
    np.testing.assert_allclose(found.keys.mean(0), 0, atol=1e-5)
    best = max(((i, j) for j in range(size) for i in range(j)), key=lambda axes: share(*axes))
    assert (found.axes, found.share, found.left_out) == (
        best,
        pytest.approx(share(*best), abs=1e-5),
        "",
    )


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
    residual = Capture(residual=True)
    shares = list[float]()
    runs = [model.translate(text, capture=residual) for text in TEXTS[:2]]
    found = sink(model, runs, (kind, 1, 2), shares.append)
    assert found.token == ("<s>" if kind is DECODER else "</s>")
    assert found.rows == sum(len(run.target_ids) for run in runs)
    assert shares == [0.5, 1]
    outlying = random_translator(tokenizer, "post")
    outlying.model.embedding.weight.data[outlying.config.eos_id, 3] = 500
    runs = [outlying.translate(text, capture=residual) for text in TEXTS[:2]]
    assert sink(outlying, runs, (ENCODER, 0, 0)).outliers == (3,)
