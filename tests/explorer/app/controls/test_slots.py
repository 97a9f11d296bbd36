from __future__ import annotations

import json

import numpy as np

from explorer.app.controls.slots import SlotPicture, shares, signed
from explorer.figures.base.strips import Strip, strips_spec


def test_a_picture_travels_with_everything_that_is_said_of_it():
    spec = strips_spec([Strip("x", np.arange(3.0))])
    picture = SlotPicture(
        "read", spec, "Vector x", "vectors", {"text": "✓ verified"}, (signed(2.0, "all"),), 600
    )
    sent = json.loads(json.dumps(picture.sent()))
    assert (sent["name"], sent["alt"], sent["caption"], sent["least"]) == ("read", "Vector x", "vectors", 600)
    assert sent["height"] == spec["layout"]["height"]
    assert json.loads(sent["figure"])["data"][0]["name"] == "x"
    assert sent["legends"][0]["about"] == "all"


def test_a_legend_of_signed_numbers_names_its_ends_if_all_share_them():
    joint, own = signed(4.966, "one scale"), signed(None, "own scales")
    assert (joint.low, joint.high) == ("−4.97", "+4.97")
    assert (own.low, own.high) == ("− largest", "+ largest")
    assert joint.colors[0] != joint.colors[-1]


def test_a_legend_of_weights_has_the_hue_of_its_kind():
    assert len({shares(kind, "weight").colors for kind in ("encoder", "decoder", "cross")}) == 3
    assert (shares("cross", "weight").low, shares("cross", "weight").high) == ("0", "1")
