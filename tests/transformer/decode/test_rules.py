"""Search rules against transformers' own, on random histories."""

from __future__ import annotations

import random

import pytest
import torch

from transformer import interventions as do
from transformer.decoding import SearchRules, constrained
from transformer.interventions import InterventionError

PIECES, END, START = 12, 2, 11


def histories(count=40):
    draw = random.Random(0)
    return [[draw.randrange(3, 5) for _ in range(draw.randrange(24))] for _ in range(count)]


def barred(rules, written):
    log_probs = torch.randn(1, PIECES).log_softmax(-1)
    allowed, _ = rules.choices(log_probs, [(START, *written)], [False], len(written))
    kept = ~allowed.isneginf()
    assert torch.equal(allowed[kept], log_probs[kept])
    return set(torch.nonzero(~kept[0]).flatten().tolist())


def theirs(processor, written):
    scores = processor(torch.tensor([[START, *written]]), torch.zeros(1, PIECES))
    return set(torch.nonzero(scores[0].isneginf()).flatten().tolist())


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_sequences_that_may_occur_once_are_the_reference_s(size):
    from transformers import NoRepeatNGramLogitsProcessor

    reference, found = NoRepeatNGramLogitsProcessor(size), set[int]()
    for written in histories():
        assert barred(SearchRules(no_repeat=size), written) == theirs(reference, written)
        found |= barred(SearchRules(no_repeat=size), written)
    assert found


@pytest.mark.parametrize("least", [0, 1, 4])
def test_the_fewest_tokens_are_the_reference_s(least):
    from transformers import MinLengthLogitsProcessor

    reference = MinLengthLogitsProcessor(least + 1, torch.tensor([END]))
    for written in histories():
        assert barred(SearchRules(min_tokens=least, end_id=END), written) == theirs(reference, written)


def test_something_is_always_left_to_choose():
    rules = SearchRules(no_repeat=1, min_tokens=50, end_id=END)
    everything = [each for each in range(PIECES) if each not in (END, START)]
    assert barred(rules, everything) == set()


def test_rules_are_told_in_words():
    assert SearchRules().in_words == ()
    assert SearchRules(min_tokens=55, no_repeat=3).in_words == (
        "no end before 55 tokens",
        "no 3 tokens in a row twice",
    )
    assert SearchRules(no_repeat=1).in_words == ("no token twice",)


@pytest.mark.parametrize(
    ("rules", "change"),
    [
        (SearchRules(forced_start=5), do.forbid(5)),
        (SearchRules(forced_start=5), do.forbid(5, step=0)),
        (SearchRules(forced_end=2), do.forbid(2)),
    ],
)
def test_a_token_that_the_model_s_rules_write_cannot_be_forbidden(rules, change):
    with pytest.raises(InterventionError, match=r"own rules put this token into every output"):
        constrained(rules, [change], int, 2)
