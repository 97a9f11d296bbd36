"""Weights of one's own: what is taken for what, what a run of them is, and what is refused."""

from collections import OrderedDict
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch

from transformer.config import AttentionKind
from transformer.exports.array_numbers import MOST_TOKENS, WeightsError
from transformer.exports.array_run import UNCHECKED, YOURS, run_of
from transformer.exports.array_tokens import pieces_of
from transformer.exports.arrays import own_arrays
from transformer.text.words import Special
from transformer.view import Window

WORDS = ["[CLS]", "old", "house", "##s", "[SEP]"]
PIECES = ("[CLS]", "▁old", "▁house", "s", "[SEP]")


def weights_of(*shape: int, causal: bool = False) -> np.ndarray:
    """Random weights whose rows sum to 1, computed cell by cell."""
    rng = np.random.default_rng(sum(shape))
    weights = rng.random(shape).astype(np.float32) + 0.1
    for place in np.ndindex(shape[:-1]):
        if causal:
            weights[place][place[-1] + 1 :] = 0
        weights[place] /= weights[place].sum()
    return weights


class OnlyDlpack:
    """An array that only shares its memory."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class Cache:
    """A cache of TransformerLens: what reads like a mapping, and is none."""

    def __init__(self, arrays: Mapping[str, object]) -> None:
        self.arrays = arrays

    def keys(self) -> list[str]:
        return list(self.arrays)

    def __getitem__(self, name: str) -> object:
        return self.arrays[name]


FULL = weights_of(2, 3, 5, 5)
CAUSAL = weights_of(2, 3, 5, 5, causal=True)
CROSS = weights_of(2, 3, 4, 5)
ALMOST = CAUSAL.copy()
ALMOST[1, 2, 2, 3] = 0.1
GIVEN: dict[str, tuple[object, np.ndarray]] = {
    "an array": (FULL, FULL),
    "one layer": (FULL[0], FULL[:1]),
    "one matrix": (FULL[0, 1], FULL[:1, 1:2]),
    "nested lists": (FULL.tolist(), FULL),
    "layers": ([*FULL], FULL),
    "layers with their batch": (tuple(FULL[:, None]), FULL),
    "stacked layers with their batch": (FULL[:, None], FULL),
    "layers of one head": ([*FULL[:, 2]], FULL[:, 2:]),
    "tensors that need gradients": ([torch.from_numpy(a).requires_grad_() for a in FULL], FULL),
    "one that only shares its memory": (OnlyDlpack(FULL), FULL),
    "half precision": (FULL.astype(np.float16), FULL.astype(np.float16)),
    "bfloat16": (
        torch.from_numpy(FULL).bfloat16(),
        torch.from_numpy(FULL).bfloat16().float().numpy(),
    ),
    "outputs of transformers": (OrderedDict(attentions=tuple(FULL[:, None]), logits=None), FULL),
    "a cache": (
        Cache(
            {
                "blocks.1.attn.hook_pattern": FULL[1, None],
                "blocks.0.attn.hook_pattern": FULL[0, None],
                "blocks.0.hook_resid_pre": FULL,
            }
        ),
        FULL,
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_weights_are_taken_in_every_form(name: str):
    weights, expected = GIVEN[name]
    run = run_of(weights, WORDS)
    assert list(run.config.sizes.items()) == [("encoder", expected.shape[:2])]
    for layer, head in np.ndindex(expected.shape[:2]):
        found = run.weights("encoder", layer, head)
        assert found.dtype == np.float32
        assert np.array_equal(found, expected[layer, head].astype(np.float32))
    assert run.source_tokens == PIECES
    assert (run.target_tokens, run.steps, run.log_probs) == ((), (), ())


def test_numbers_are_not_copied_where_they_need_not_be():
    run = run_of([*FULL], WORDS)
    assert all(np.shares_memory(run.weights("encoder", layer, 1), FULL) for layer in range(2))
    assert run.nbytes == FULL.nbytes


KINDS: dict[str, tuple[object, object, object, dict[str, tuple[str, bool]]]] = {
    "square": (FULL, None, "", {"encoder": ("", False)}),
    "zeros above the diagonal": (CAUSAL, WORDS, "", {"decoder": ("", True)}),
    "zeros above the diagonal but for one": (ALMOST, WORDS, "", {"encoder": ("", False)}),
    "the same, said to be an encoder's": (CAUSAL, WORDS, "encoder", {"encoder": ("", False)}),
    "a decoder that sees all": (FULL, WORDS, "decoder", {"decoder": ("", False)}),
    "oblong": (CROSS, None, "", {"cross": ("", False)}),
    "square, of two texts": (FULL, (list("abcde"), WORDS), "", {"cross": ("", False)}),
    "a word of one's own": (FULL, WORDS, "heads of BERT", {"encoder": ("heads of BERT", False)}),
    "one cell": (np.ones((1, 1)), ["a"], "", {"encoder": ("", False)}),
    "three kinds": (
        {
            "encoder_attentions": FULL,
            "decoder_attentions": CAUSAL[..., :4, :4],
            "cross_attentions": CROSS,
        },
        {"encoder": WORDS, "decoder": list("abcd")},
        "",
        {"encoder": ("", False), "decoder": ("", True), "cross": ("", False)},
    ),
    "words of one's own": (
        {"text to image": CROSS, "image": FULL},
        {"keys": WORDS, "queries": list("abcd")},
        "",
        {"encoder": ("image", False), "cross": ("text to image", False)},
    ),
    "what each is": (
        {"one": FULL, "two": FULL},
        WORDS,
        {"one": "encoder", "two": "decoder"},
        {"encoder": ("one", False), "decoder": ("two", False)},
    ),
    "an encoder and a decoder of a cache": (
        {
            "encoder.0.attn.hook_pattern": FULL[0],
            "decoder.0.attn.hook_pattern": CAUSAL[0, :, :4, :4],
            "decoder.0.cross_attn.hook_pattern": CROSS[0],
        },
        {"encoder": WORDS, "decoder": list("abcd")},
        "",
        {"encoder": ("", False), "decoder": ("", True), "cross": ("", False)},
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_weights_connect_follows_from_what_is_said_or_from_shapes_tokens_and_zeros(name: str):
    weights, tokens, kinds, expected = KINDS[name]
    sites = run_of(weights, tokens, kinds=kinds).config.sites
    assert {str(kind): (site.title, site.causal) for kind, site in sites.items()} == expected


def test_three_kinds_have_their_own_numbers_of_layers_and_heads_on_one_cursor():
    run = run_of(
        {"encoder": FULL, "decoder": weights_of(1, 2, 4, 4, causal=True), "cross": CROSS[:1]},
        {"encoder": WORDS, "decoder": ["<s>", "▁das", "▁alte", "▁Haus"]},
        name="T5",
    )
    assert run.config.sizes == {"encoder": (2, 3), "decoder": (1, 2), "cross": (1, 3)}
    assert {side: run.tokens(side) for side in run.config.stacks} == {
        "encoder": PIECES,
        "decoder": ("<s>", "▁das", "▁alte", "▁Haus"),
    }
    assert (run.config.last_kind, run.config.cursor_side) == ("cross", "decoder")
    assert (run.model, run.source_text, run.text) == ("T5", "old houses", "das alte Haus")
    labels = run.labels("cross")
    assert (labels.queries, labels.predicted, labels.keys) == (
        run.target_tokens,
        None,
        run.source_tokens,
    )


def test_a_map_has_no_scores_and_says_that_nobody_checked_it():
    run = run_of(CAUSAL, WORDS)
    window = Window(1, 4, 0, 3)
    view = run.map("decoder", 1, 2, window)
    assert np.array_equal(view.weights, CAUSAL[1, 2, 1:4, :3])
    assert view.mask.tolist() == [[column <= row for column in range(3)] for row in range(1, 4)]
    assert view.scores is None
    assert view.sums == pytest.approx([1, 1, 1])
    assert (view.model, view.norm, view.key_tokens) == (YOURS, "unknown", PIECES[:3])
    for report in (view.audit, run.audit(), run.audit((AttentionKind.DECODER, 0))):
        assert (report.unchecked, report.passed) == (UNCHECKED, False)
        assert report.remarks == (
            "Cells above the diagonal are all exactly 0, so they are drawn as masked: each row is "
            "taken to see the tokens up to its own.",
        )
    with pytest.raises(IndexError, match="no head 3 in a layer 0"):
        run.weights("decoder", 0, 3)


def test_rows_that_do_not_sum_to_1_and_cells_that_are_no_weights_are_counted_and_left_alone():
    weights = FULL.copy()
    weights[0, 1, 2] *= 1.5
    weights[1, 0, 0, 0] = -0.25
    weights[1, 2, 3, 3] = np.nan
    weights[1, 2, 4] = [3, -2, 0, 0, 0]
    run = run_of(weights, WORDS)
    sums = [sum(map(float, row)) for row in weights.reshape(-1, 5)]
    cells = [float(cell) for cell in weights.ravel()]
    remarks = (
        f"{sum(abs(total - 1) > 1e-3 for total in sums)} of {len(sums)} rows do not sum to 1; the "
        "furthest sums to 1.5.",
        f"{sum(cell < 0 for cell in cells)} cells are negative, drawn as 0 is.",
        "1 cell is above 1, drawn as 1 is.",
        "1 cell is no number (NaN), drawn empty.",
    )
    assert run.audit().remarks == remarks
    assert run.notes == (f"{' '.join(remarks)} The numbers are shown as they are.",)
    assert np.array_equal(run.weights("encoder", 1, 2), weights[1, 2], equal_nan=True)
    remarks = {
        (layer, head): run.map("encoder", layer, head).audit.remarks
        for layer, head in np.ndindex(2, 3)
    }
    assert remarks == {
        (0, 0): (),
        (0, 1): ("1 of 5 rows do not sum to 1; the furthest sums to 1.5.",),
        (0, 2): (),
        (1, 0): (
            f"1 of 5 rows do not sum to 1; the furthest sums to {sums[15]:.3g}.",
            "1 cell is negative, drawn as 0 is.",
        ),
        (1, 1): (),
        (1, 2): (
            "1 cell is negative, drawn as 0 is.",
            "1 cell is above 1, drawn as 1 is.",
            "1 cell is no number (NaN), drawn empty.",
        ),
    }
    assert run.map("encoder", 0, 1).sums == pytest.approx(sums[5:10])


def test_half_precision_may_round_more():
    rounded = FULL + np.float32(0.0008)
    assert run_of(rounded, WORDS).notes
    assert not run_of(rounded.astype(np.float16), WORDS).notes


@pytest.mark.parametrize(
    ("tokens", "pieces"),
    [
        (["▁the", "▁cat", "s", "</s>"], ("▁the", "▁cat", "s", "</s>")),
        (["The", "Ġcat", "s", "Ã©", "Ċ"], ("The", "▁cat", "s", "é", "<0x0A>")),
        (["[CLS]", "un", "##able", ".", "##"], ("[CLS]", "▁un", "able", ".", "##")),
        (["The", "old house", ","], ("▁The", "▁old▁house", ",")),
        ([Special("END"), "a"], ("END", "▁a")),
    ],
)
def test_tokens_are_read_with_the_marks_of_their_vocabulary(
    tokens: list[str], pieces: tuple[str, ...]
):
    assert pieces_of(tokens) == pieces


TOKENS = {
    "an array": np.array(WORDS),
    "bytes": np.array(WORDS, "S"),
    "objects": np.array(WORDS, object),
    "a generator": (word for word in WORDS),
    "keys of a mapping": dict.fromkeys(WORDS).keys(),
    "a batch of one": [WORDS],
    "by side": {"encoder": iter(WORDS)},
}


@pytest.mark.parametrize("name", TOKENS)
def test_tokens_are_taken_in_every_form(name: str):
    assert run_of(FULL, TOKENS[name]).source_tokens == PIECES


@pytest.mark.parametrize(
    "ids", [[7, 8, 9, 10, 11], torch.arange(7, 12)[None], list(torch.arange(7, 12))]
)
def test_ids_are_shown_by_their_numbers(ids: object):
    assert run_of(FULL, ids).source_tokens == ("▁7", "▁8", "▁9", "▁10", "▁11")


def test_what_no_file_can_hold_is_replaced_in_tokens_titles_and_names():
    run = run_of(FULL, ["\ud800", *"abcd"], kinds="k\ud800", name="n\udfff")
    assert run.source_tokens[0] == "▁\ufffd"
    assert run.config.sites["encoder"].title == "k\ufffd"
    assert run.model == "n\ufffd"


def test_no_kinds_and_no_name_may_be_none():
    run = run_of(FULL, WORDS, kinds=None, name=None)
    assert (run.model, run.config.sites["encoder"].title) == (YOURS, "")


def test_masked_cells_are_no_numbers_and_the_largest_numbers_are_infinite():
    masked = FULL < 0.1
    masked[1, 1, 0] = False
    weights = np.ma.array(FULL.astype(np.float64), mask=masked)
    weights[1, 1, 0, 0] = 1e300
    for given in (weights, [*weights]):
        run = run_of(given, WORDS)
        expected = np.where(weights.mask, np.nan, weights.data)
        expected[1, 1, 0, 0] = np.inf
        for layer, head in np.ndindex(2, 3):
            shown = run.weights("encoder", layer, head)
            assert np.array_equal(shown, expected[layer, head].astype(np.float32), equal_nan=True)
    remarks = run.audit().remarks
    assert f"{int(weights.mask.sum())} cells are no number (NaN), drawn empty." in remarks
    assert any(remark.endswith("the furthest sums to inf.") for remark in remarks)


def test_tokens_that_stand_for_no_text_are_known_by_their_names():
    assert [isinstance(piece, Special) for piece in pieces_of(WORDS)] == [True, *[False] * 3, True]
    assert not any(isinstance(piece, Special) for piece in pieces_of(["pt_BR", "<b>", "[1]"]))


def test_who_has_the_vocabulary_says_which_tokens_stand_for_no_text():
    tokens = ["<start>", "[SEP]", "a"]
    by_list = run_of(CROSS[..., :3, :3], tokens, special=np.array([1, 0, 0]))
    by_side = run_of(
        CROSS[..., :3],
        {"keys": tokens, "queries": WORDS[:4]},
        special={"source": [1, 0, 0], "target": [0] * 4},
    )
    for run in (by_list, by_side):
        assert run.source_tokens == ("<start>", "▁[SEP]", "▁a")
        assert [isinstance(piece, Special) for piece in run.source_tokens] == [True, False, False]
    assert by_side.target_tokens[0] == "▁[CLS]"  # said to be a word


def test_weights_without_tokens_are_numbered():
    run = run_of(CROSS)
    assert run.source_tokens == ("▁1", "▁2", "▁3", "▁4", "▁5")
    assert run.target_tokens == ("▁1", "▁2", "▁3", "▁4")


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "special ones of no tokens": (
        lambda: run_of(FULL, special=[1] * 5),
        "Special tokens were given without the tokens that they are of.",
    ),
    "special ones of one side": (
        lambda: run_of(FULL, WORDS, special={"encoder": [0] * 5}),
        "Special tokens are to be given in the form of the tokens.",
    ),
    "special ones by name": (
        lambda: run_of(FULL, WORDS, special=WORDS),
        "Special tokens are told by 0 and 1, one for each token, and not by '[CLS]'.",
    ),
    "a side by two names": (
        lambda: run_of(FULL, {"encoder": WORDS, "source": WORDS}),
        "The tokens of the encoder are given twice: once is enough.",
    ),
    "tokens": (
        lambda: own_arrays(FULL, WORDS[:4]),
        "The queries axis of “weights” has 5, but 4 tokens were given.",
    ),
    "tokens of keys": (
        lambda: own_arrays(CROSS, (list("abcd"), WORDS[:3])),
        "The keys axis of “weights” has 5, but 3 tokens were given.",
    ),
    "another kind": (
        lambda: own_arrays({"encoder": FULL, "cross": CROSS[..., :3]}),
        "The keys axis of “cross” has 3, but “encoder” has 5.",
    ),
    "layers": (
        lambda: own_arrays([FULL[0], FULL[0, :, :4, :4]]),
        "The queries axis of “weights” has 5 in layer 1 and 4 in layer 2.",
    ),
    "heads": (
        lambda: own_arrays([FULL[0], FULL[0, :2]]),
        "The heads axis of “weights” has 3 in layer 1 and 2 in layer 2.",
    ),
    "self-attention": (
        lambda: own_arrays(CROSS, kinds="decoder"),
        "The queries axis of “weights” has 4 and its keys axis 5; self-attention has as many of "
        "both.",
    ),
    "a batch": (
        lambda: own_arrays(torch.ones(2, 3, 1, 4, 4)),
        "The batch axis of layer 1 of “weights” has 3 texts; give 1, such as layer[:1].",
    ),
    "long": (
        lambda: own_arrays(np.zeros((1, 1, 1, MOST_TOKENS + 1), np.float16)),
        "The keys axis of “weights” has 1,025; from 1 to 1,024 are shown.",
    ),
    "empty": (
        lambda: own_arrays(np.zeros((2, 0, 3, 3))),
        "The heads axis of “weights” has 0; from 1 to 256 are shown.",
    ),
    "no layers": (lambda: own_arrays(np.zeros((0, 2, 3, 3))), "“weights” has no layers."),
    "deep": (
        lambda: own_arrays(np.zeros((257, 1, 1, 1))),
        "The layers axis of “weights” has 257; at most 256 are shown.",
    ),
    "axes": (
        lambda: own_arrays(np.zeros(5)),
        "“weights” has 1 axes; weights are one matrix (queries, keys), (heads, queries, keys), "
        "(layers, heads, queries, keys), or a list of layers.",
    ),
    "axes of a layer": (
        lambda: own_arrays([np.zeros(5)]),
        "Layer 1 of “weights” has 1 axes; a layer has 3, (heads, queries, keys), or 4 with its "
        "batch.",
    ),
    "no eager attention": (
        lambda: own_arrays({"attentions": (None, None)}),
        "There are no numbers in layer 1 of “attentions”: load the model with "
        'attn_implementation="eager", which keeps its weights.',
    ),
    "steps of generate()": (
        lambda: own_arrays([(torch.ones(1, 1, 1, 1),), (torch.ones(1, 1, 1, 2),)]),
        "“weights” has a list for each step, as generate() returns: run the model once over the "
        "whole output.",
    ),
    "ragged": (
        lambda: own_arrays([[0.5, 0.5], [1.0]]),
        "“weights” is no array: its rows have different lengths, or hold more than numbers.",
    ),
    "texts": (
        lambda: own_arrays(np.array([["a"]])),
        "“weights” holds <U1; weights must be numbers.",
    ),
    "nothing": (lambda: own_arrays({}), "There are no weights: the mapping is empty."),
    "one text": (
        lambda: own_arrays(FULL, "the old house"),
        "The tokens are one text; give a list with an entry for each token.",
    ),
    "shares": (lambda: own_arrays(FULL, [1.5, 2, 3, 4, 5]), "The token 1.5 is no text."),
    "a truth": (lambda: own_arrays(FULL, [True, 2, 3, 4, 5]), "The token True is no text."),
    "a mapping for a token": (lambda: own_arrays(FULL, [{}] * 5), "The token {} is no text."),
    "a list for a token": (
        lambda: own_arrays(FULL, {"encoder": [["a"], ["b"]]}),
        "The token ['a'] is no text.",
    ),
    "no list": (
        lambda: own_arrays(FULL, 5),
        "The tokens 5 are no list with an entry for each token.",
    ),
    "no list of a side": (
        lambda: own_arrays(FULL, {"encoder": 5}),
        "The tokens 5 are no list with an entry for each token.",
    ),
    "no order": (
        lambda: own_arrays(np.ones((1, 1)), {"a"}),
        "The tokens {'a'} are no list with an entry for each token.",
    ),
    "no tokens": (
        lambda: own_arrays(FULL, []),
        "The queries axis of “weights” has 5, but 0 tokens were given.",
    ),
    "names that are no texts": (
        lambda: own_arrays({0: FULL}),
        "The name 0 in the mapping of weights is no text; layers are a list.",
    ),
    "a tensor without numbers": (
        lambda: own_arrays(torch.ones(1, 1, 3, 3, device="meta")),
        "“weights” is a tensor on the device “meta”, which holds no numbers.",
    ),
    "a cell that is None": (
        lambda: own_arrays([[None, 1], [2, 3]]),
        "“weights” has cells that are None, or null, and no numbers.",
    ),
    "None": (lambda: own_arrays({"weights": None}), "There are no numbers in “weights”."),
    "kinds": (
        lambda: own_arrays(FULL, WORDS, 5),
        "`kinds` holds 5; it is a word, or a mapping with a word for each name.",
    ),
    "kinds by name": (
        lambda: own_arrays(FULL, WORDS, {"weights": 5}),
        "`kinds` holds 5; it is a word, or a mapping with a word for each name.",
    ),
    "a name": (lambda: run_of(FULL, WORDS, name=5), "The name 5 is no text."),
    "many heads": (
        lambda: own_arrays(np.zeros((256, 65, 1, 1))),
        "“weights” has 256 layers of 65 heads; at most 16,384 heads are shown.",
    ),
    "many lists": (
        lambda: own_arrays(FULL, [WORDS, WORDS, WORDS]),
        "There are 3 lists of tokens; give one, or those of queries and of keys.",
    ),
    "a side": (
        lambda: own_arrays(FULL, {"left": WORDS}),
        "There is no side “left”; tokens are of the encoder or the decoder.",
    ),
    "two of one kind": (
        lambda: own_arrays({"one": FULL, "two": FULL}, WORDS),
        "“one” and “two” are both taken for encoder attention: say of each what it is, encoder, "
        "decoder or cross.",
    ),
    "one word for two": (
        lambda: own_arrays({"one": FULL, "two": FULL}, WORDS, "encoder"),
        "One word, “encoder”, is given for 2 kinds: say of each what it is.",
    ),
    "a word for nothing": (
        lambda: own_arrays({"one": FULL}, WORDS, {"two": "encoder"}),
        "There are no weights “two”; there are one.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_in_a_sentence_that_names_the_axis_and_both_sizes(name: str):
    ask, sentence = REFUSED[name]
    with pytest.raises(WeightsError) as refusal:
        ask()
    assert str(refusal.value) == sentence
