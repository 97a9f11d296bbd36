"""How sure a model is of an output: means counted by hand, and the place of the least sure
fifth."""

import pytest

from explorer.lenses.words.doubt import mean_log_prob, unsure_below


def test_four_of_five_outputs_reach_the_limit() -> None:
    outputs = [[-0.1, -0.3], [-1.0], [-0.4, -0.4, -0.4], [], [-2.0, -1.0], [-0.8], [-0.5]]
    means = [-0.2, -1.0, -0.4, -1.5, -0.8, -0.5]
    assert [mean_log_prob(output) for output in outputs if output] == pytest.approx(means)
    assert unsure_below(outputs) == pytest.approx(
        -1.0
    )  # the second of six: at one fifth of five gaps
    assert sum(mean >= -1.0 for mean in means) >= 0.8 * len(means)
    assert unsure_below([[-0.5, -1.5]]) == -1.0


def test_nothing_is_usual_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing is usual"):
        unsure_below([[], []])
