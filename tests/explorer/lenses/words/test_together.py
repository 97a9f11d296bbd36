"""Several rows of a head as one, against a plain loop over what the model computed."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from head_views import view

from explorer.lenses.words.reading import Reading, ReadView, read_view
from explorer.lenses.words.together import as_one, rows_of

WORDS = ("▁The", "▁book", "s", "▁are", "▁here", "</s>")
CHOICES: tuple[tuple[int, ...], ...] = ((0, 1), (1, 3, 4), (0, 5), tuple(range(6)))


def plain(drawn: ReadView, rows: Sequence[int], how: str) -> list[float]:
    """The mean or the sum of some rows, key by key."""
    row = []
    for key in range(drawn.weights.shape[1]):
        total = 0.0
        for query in rows:
            total += float(drawn.weights[query, key])
        row.append(total / len(rows) if how == "mean" else total)
    return row


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("how", ["mean", "sum"])
@pytest.mark.parametrize("rows", CHOICES)
def test_a_row_that_stands_for_several_is_their_mean_or_sum(kind: str, how: str, rows):
    drawn = read_view(view(kind, WORDS, WORDS), Reading())
    one = as_one(drawn, rows, how)
    assert one.weights[0].tolist() == pytest.approx(plain(drawn, rows, how), abs=1e-6)
    seen = [any(drawn.mask[query, key] for query in rows) for key in range(len(WORDS))]
    assert one.mask[0].tolist() == seen
    assert (one.query_tokens, one.derived) == ((f"▁{how} of {len(rows)} rows",), True)


@pytest.mark.parametrize("how", ["mean", "sum"])
def test_its_audit_holds_the_rows_that_the_model_computed_against_it(translator, how: str):
    run = translator.translate("one two three", max_length=4)
    drawn = read_view(run.map("decoder", 1, 0), Reading())
    one = as_one(drawn, (0, 2, 3), how)
    assert one.audit.passed
    assert len(one.audit.checks) > len(drawn.audit.checks)
    wrong = replace(one, weights=one.weights + np.float32(1e-3))
    assert [check.name for check in wrong.audit.checks if not check.passed] == ["arrays drawn"]


def test_weight_on_hidden_tokens_is_put_together_too():
    drawn = read_view(view("encoder", WORDS, WORDS), Reading(hide_special=True))
    one = as_one(drawn, (0, 2), "sum")
    assert one.hidden[0] == pytest.approx(float(drawn.hidden[0]) + float(drawn.hidden[2]))


def test_a_row_counts_once_however_many_of_its_pieces_are_chosen_and_one_alone_is_none():
    words = read_view(view("encoder", WORDS, WORDS), Reading(words=True, hide_special=True)).rows
    assert [(word.start, word.stop) for word in words] == [(0, 1), (1, 3), (3, 4), (4, 5)]
    assert rows_of(words, (0, 1, 2)) == (0, 1)
    assert rows_of(words, (1, 2)) == ()
    assert rows_of(words, (4, 5)) == ()  # the row of `</s>` is hidden
    assert rows_of(words, (99, 3, 0)) == (0, 2)
    assert rows_of((), (0, 1)) == ()
