"""What the lesson on attention in a language model says, measured on the bundled model."""

import math

import numpy as np
import pytest

from explorer.app.address.parameters import parse
from explorer.app.lessons import asking, files
from explorer.app.lessons.questions import Measured
from explorer.app.server.view import View

LESSON = files.every()[0]["induction"]
ANSWERS = {
    2: ("“<s>”", 0.96),
    3: ("L4 H1", 0.68),
    4: ("L3 H4", 0.88),
    5: ("L4 H1", 0.80),
    6: ("“‿ur” (key 5)", 0.96),
    7: ("L4 H1", 3.23),
    8: ("“<s>”", 0.78),
}
"""By step, from 1: the answer, and its number."""
SECOND_D, SECOND_UR = 18, 19
"""Rows, from 0, that read the second “D” and the second “ur”; the first ones are read 15 before."""
SINK = (3, 0)
PREVIOUS = (2, 3)


def opened(number: int) -> tuple[View, Measured | None]:
    """The run of a step, from 1, and its answer."""
    step = LESSON.steps[number - 1]
    now, unreadable = parse({name: [value] for name, value in step.params.items()})
    assert unreadable == []
    view, at = asking.open_view(now, LESSON.needs)
    if step.question is None:
        return view, None
    return view, asking.answer(view, step.question, at)


@pytest.mark.parametrize("number", ANSWERS)
def test_the_bundled_model_answers_the_questions_clearly(number: int):
    _, found = opened(number)
    assert found is not None
    best = found.options[found.best]
    name, value = ANSWERS[number]
    assert (best.name, best.value) == (name, pytest.approx(value, abs=0.006))
    assert found.margin > 0.3


def test_the_token_is_far_more_probable_the_second_time():
    view, _ = opened(1)
    run = view.translation
    assert [run.target_tokens[step] for step in (2, 3, 17, 18)] == ["▁D", "ur", "▁D", "ur"]
    assert run.n_given == SECOND_D
    first = math.exp(run.steps[3].log_prob)
    second = math.exp(run.steps[SECOND_D].log_prob)
    assert first < 0.01
    assert second > 0.7


def test_the_induction_head_rests_on_the_first_token_until_something_is_repeated():
    view, _ = opened(2)
    weights = view.translation.weights("decoder", *SINK)
    tokens = view.translation.decoder_input_tokens
    assert len(set(tokens[:10])) == 10  # nothing was said twice up to the marked row
    assert weights[1:13, 0].min() > 0.85
    assert weights[SECOND_D, 0] < 0.05


def test_without_the_previous_token_head_the_induction_head_loses_its_place():
    whole = opened(9)[0].translation
    without = opened(8)[0].translation
    assert whole.decoder_input_tokens[:20] == without.decoder_input_tokens[:20]
    after_first_ur = 5
    assert whole.decoder_input_tokens[after_first_ur] == "s"
    place = (SECOND_UR, after_first_ur)
    assert whole.weights("decoder", *SINK)[place] > 0.9
    assert without.weights("decoder", *SINK)[place] < 0.1
    assert int(np.argmax(whole.weights("decoder", *SINK)[SECOND_UR])) == after_first_ur


def test_both_heads_are_needed_for_the_repetition():
    view, _ = opened(9)
    run = view.translation
    model = view.source.load()
    from explorer.lenses.measures.effect import head_effects

    effects = head_effects(model, run, "decoder", SECOND_UR)
    token = math.exp(run.steps[SECOND_UR].log_prob)
    assert run.target_tokens[SECOND_UR] == "s"
    assert token > 0.8
    for head in (SINK, PREVIOUS):
        assert token * math.exp(effects[head]) < 0.05
    others = np.delete(
        effects.ravel(), [np.ravel_multi_index(h, effects.shape) for h in (SINK, PREVIOUS)]
    )
    assert token * math.exp(others.min()) > 0.6
