from __future__ import annotations

import pytest

from explorer.app.shell.fitting import fit_head, fit_model, fit_position


@pytest.mark.parametrize("name", ["../../etc", "/etc/passwd", "nothing", ""])
def test_a_model_that_is_no_known_name_is_refused(name: str):
    model, notes = fit_model(name, ["en-de", "own"])
    assert model == "en-de"
    assert len(notes) == 1
    assert "passwd" not in notes[0]


def test_heads_out_of_range_become_the_nearest_and_are_named():
    assert fit_head("cross", (9, 2), (3, 8), (0, 0))[0] == (2, 2)
    assert "3 layers of 8 heads" in fit_head("cross", (9, 2), (3, 8), (0, 0))[1][0]
    assert fit_head("cross", None, (3, 8), (1, 1)) == ((1, 1), [])


def test_positions_beyond_the_sentence_are_named():
    assert fit_position("step", 40, 5)[0] == 4
    assert fit_position("step", 4, 5) == (4, [])
    assert fit_position("step", 4, 1) == (0, ["This sentence has 1 step; step 1 is shown."])
    assert fit_position("step", None, 5) == (None, [])
