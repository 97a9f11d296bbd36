"""The badge of a word alignment turns if what is drawn is exchanged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sources import named

from transformer import AttentionKind, Translator
from transformer.text.words import Group
from ui.server.opened import Opened
from ui.server.runs import Request
from ui.views.attention.aligned import LinkRules, Text, align, audit, chosen_map


@pytest.fixture
def opened(translator: Translator) -> Opened:
    text = "one two three four five"
    return Opened(
        Request(named("random"), text, "greedy", None), translator.force(text, "two one four three"), None
    )


@pytest.mark.parametrize("choice", [(None, False), (None, True), ((0, 1), False), ((1, 2), True)])
def test_words_in_another_order_of_another_head_or_cut_elsewhere_fail(opened: Opened, choice):
    choice = LinkRules((1, 2), choice[0], choice[1], "strongest", 0.0)
    text = Text.of(opened, None)
    words, _ = align(chosen_map(opened, choice)[0], text, choice)
    assert audit(opened, choice, text, words).passed
    assert audit(opened, choice, text).passed
    for axis in (0, 1):
        assert not audit(opened, choice, text, np.flip(words, axis)).passed
    other = replace(choice, head=(1, 1), mean=None if choice.mean is None else (0, 0))
    assert not audit(opened, choice, text, align(chosen_map(opened, other)[0], text, choice)[0]).passed
    first, second, *rest = text.source
    one = Group(first.start, second.stop, first.text + second.text)
    early = replace(text, source=[one, *rest])
    drawn, _ = align(chosen_map(opened, choice)[0], early, choice)
    assert not audit(opened, choice, early, drawn).passed


def test_the_badge_of_a_mean_covers_its_layers(opened: Opened):
    trace, choice = opened.translation.attention, LinkRules((1, 2), (0, 2), False, "strongest", 0.0)
    layers = trace.layers[AttentionKind.CROSS]
    wrong = (*layers[:2], replace(layers[2], output=layers[2].output.roll(1, 1)))
    run = replace(
        opened.translation, attention=replace(trace, layers={**trace.layers, AttentionKind.CROSS: wrong})
    )
    changed, text = replace(opened, translation=run), Text.of(opened, None)
    words, _ = align(chosen_map(changed, choice)[0], text, choice)
    assert not audit(changed, choice, text, words).passed
    assert not audit(changed, choice, text).passed
