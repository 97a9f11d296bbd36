"""The badge of a word alignment turns if what is drawn is exchanged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from forged import forged
from sources import named

from explorer.app.sections.cross_attention.links import LinkRules
from explorer.app.server.runs import Request
from explorer.app.server.view import View
from transformer import AttentionKind, Translator


@pytest.fixture
def opened(translator: Translator) -> View:
    text = "one two three four five"
    return View(
        Request(named("random"), text, "greedy", None), translator.force(text, "two one four three"), None
    )


def test_the_badge_of_a_mean_covers_its_layers(opened: View):
    trace, choice = opened.translation.attention, LinkRules((1, 2), (0, 2), False, "strongest", 0.0, None)
    layers = trace.layers[AttentionKind.CROSS]
    wrong = (*layers[:2], replace(layers[2], output=layers[2].output.roll(1, 1)))
    run = replace(
        opened.translation, attention=forged(trace, layers={**trace.layers, AttentionKind.CROSS: wrong})
    )
    changed = replace(opened, translation=run)
    assert not choice.audit(changed).passed
    assert replace(choice, mean=(0, 1)).audit(changed).passed
