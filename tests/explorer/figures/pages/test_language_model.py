from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.base.style import figure
from explorer.figures.pages.language_model import LARGEST, bits_spec, share

TOKENS = ("▁the", "▁the", "<0x3C>", "</s>")
BITS = (3.25, 0.5, 17.0, 0.01)


def test_every_token_has_its_bar_and_a_frame_in_which_it_stands_out():
    spec = bits_spec(TOKENS, BITS)
    np.testing.assert_allclose(spec["data"][0]["y"], BITS)
    assert [frame["data"][0]["selectedpoints"] for frame in spec["frames"]] == [[0], [1], [2], [3]]
    assert spec["layout"]["yaxis"]["range"][1] > max(BITS)
    assert figure(spec).data[0].hovertext[2] == "&lt;"


def test_equal_tokens_keep_their_own_names():
    names = bits_spec(TOKENS, BITS)["layout"]["xaxis"]["ticktext"]
    assert len(set(names)) == len(TOKENS)


@pytest.mark.parametrize(("bits", "shade"), [(0, 0), (LARGEST / 2, 0.5), (LARGEST, 1), (3 * LARGEST, 1)])
def test_the_shade_is_the_same_in_every_text(bits: float, shade: float):
    assert share(bits) == shade
