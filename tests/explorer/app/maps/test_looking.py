from __future__ import annotations

from dataclasses import fields, replace

import pytest
from forged import forged
from random_models import random_language_model
from sources import named

from explorer.app.address.state import State
from explorer.app.maps.looking import HeadSelection, audited, cells_of, looks_of, reading_of
from explorer.app.server import runs
from explorer.app.server.runs import Request
from explorer.app.server.view import View
from explorer.linked.view import Cursor
from transformer import AttentionKind, Translator
from transformer.text.tokenizer import Tokenizer

HEADS = State(encoder=(0, 0), decoder=(0, 0), cross=(0, 0))


@pytest.fixture
def opened(solved: Translator) -> View:
    text = "one two three"
    return View(Request(named("solved"), text, "greedy", None), solved.translate(text), None)


def test_without_a_chosen_source_token_the_source_follows_cross_attention(opened: View):
    follow = runs.followed(opened.translation, (0, 0))
    for step, source in enumerate(follow):
        cells = cells_of(opened, replace(HEADS, step=step))
        assert cells == {"encoder": (source, source), "decoder": (step, step), "cross": (step, source)}


def test_a_chosen_source_token_stays_while_the_step_moves(opened: View):
    for step in range(len(opened.translation.target_tokens)):
        assert cells_of(opened, replace(HEADS, step=step, source=2))["cross"] == (step, 2)


def test_every_kind_gets_what_the_state_asks_for(opened: View):
    asked = replace(HEADS, step=1, source=0, scale="log", window=40, words=True, hide=("special",))
    looks = looks_of(opened, asked)
    assert list(looks) == ["encoder", "decoder", "cross"]
    for kind, look in looks.items():
        assert (look.kind, look.head, look.scale, look.most) == (kind, (0, 0), "log", 40)
        assert look.cursor == Cursor(1, 0)
        assert look.reading.words
        assert look.reading == reading_of(asked, kind)


def test_rows_are_renamed_in_the_decoder_only():
    asked = State(rows="predicted")
    assert [reading_of(asked, kind).rows for kind in ("encoder", "decoder", "cross")] == [
        None,
        "predicted",
        "predicted",
    ]


def test_the_window_holds_the_cell_and_the_tokens_name_its_rows(opened: View):
    for look in looks_of(opened, replace(HEADS, step=0)).values():
        view, (row, column) = look.read(), look.cell
        assert view.rows[row].start == row
        assert view.columns[column].start == column
        assert not look.is_windowed
        assert look.lengths == tuple(map(len, look.tokens)) == view.weights.shape


def test_nothing_below_a_page_can_change_what_is_looked_at(opened: View):
    look = looks_of(opened, HEADS)["cross"]
    for field in fields(HeadSelection):
        with pytest.raises(AttributeError):
            setattr(look, field.name, None)


def test_a_run_without_a_source_is_looked_at_in_the_decoder_alone(tokenizer: Tokenizer):
    model = random_language_model(vocab_size=tokenizer.vocab_size)
    run = Translator(model, tokenizer, name="writer").force("one two three")
    opened = View(Request(named("writer"), "", "greedy", "one two three"), run, None)
    looks = looks_of(opened, State(decoder=(1, 0), step=2))
    assert tuple(looks) == opened.kinds == ("decoder",)
    look = looks["decoder"]
    assert look.cell == (2, 2)
    assert look.tokens == (run.decoder_input_tokens, run.decoder_input_tokens)
    assert look.lengths == look.read().weights.shape
    assert opened.glosses == {}
    assert opened.first_step == 0


@pytest.fixture
def tall(translator: Translator) -> View:
    """A run whose tiles are pooled."""
    text = " ".join(["one two three four five six seven"] * 6)
    return View(
        Request(named("random"), text, "greedy", None), translator.translate(text, max_length=40), None
    )


def test_the_badge_of_the_tiles_covers_every_layer_of_their_kind(tall: View):
    trace = tall.translation.attention
    layers = trace.layers[AttentionKind.ENCODER]
    wrong = (layers[0], replace(layers[1], output=layers[1].output.roll(1, 1)), *layers[2:])
    layers = {**trace.layers, AttentionKind.ENCODER: wrong}
    run = replace(tall.translation, attention=forged(trace, layers=layers))
    assert not audited(replace(tall, translation=run), "encoder").passed
