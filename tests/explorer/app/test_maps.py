"""Maps of a page: what is looked at, moves of the browser, other candidates, calls to copy,
badges."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from forged import forged
from random_models import random_model
from sources import named

from explorer.app.address import session
from explorer.app.address.state import State
from explorer.app.maps import explorer
from explorer.app.maps.explorer import changes
from explorer.app.maps.looking import audited, cells_of, looks_of
from explorer.app.maps.measures import score_rule
from explorer.app.maps.run_export import calls
from explorer.app.sections.cross_attention.links import LinkRules
from explorer.app.server import models, runs
from explorer.app.server.run_key import RunKey
from explorer.app.server.view import View
from explorer.lenses.words.alignment import Aligner
from transformer import AttentionKind, Sampling, Translator
from transformer import interventions as do
from transformer.run import Translation

HEADS = State(encoder=(0, 0), decoder=(0, 0), cross=(0, 0))


def view_of(run: Translation, name: str = "random", text: str = "one") -> View:
    return View(RunKey(named(name), text, "greedy", None), run, None)


@pytest.fixture
def opened(solved: Translator) -> View:
    return view_of(solved.translate("one two three"), "solved", "one two three")


def test_the_source_follows_cross_attention_until_a_token_of_it_is_chosen(opened: View):
    for step, source in enumerate(runs.followed(opened.translation, (0, 0))):
        cells = {"encoder": (source, source), "decoder": (step, step), "cross": (step, source)}
        assert cells_of(opened, replace(HEADS, step=step)) == cells
        assert cells_of(opened, replace(HEADS, step=step, source=2))["cross"] == (step, 2)


def test_rows_are_named_otherwise_in_the_decoder_only(opened: View):
    looks = looks_of(opened, replace(HEADS, rows="predicted")).values()
    assert [look.reading.rows for look in looks] == [None, "predicted", "predicted"]


def turned(run: Translation, kind: AttentionKind, layer: int) -> Translation:
    """The run with the output of a layer exchanged."""
    layers = list(run.attention.layers[kind])
    layers[layer] = replace(layers[layer], output=layers[layer].output.roll(1, 1))
    own = {**run.attention.layers, kind: tuple(layers)}
    return replace(run, attention=forged(run.attention, layers=own))


def test_the_badges_of_tiles_and_of_a_mean_cover_every_layer_that_is_drawn(translator: Translator):
    tall = translator.translate(" ".join(["one two three four five six seven"] * 6), max_length=40)
    assert audited(view_of(tall), "encoder").passed
    assert not audited(view_of(turned(tall, AttentionKind.ENCODER, 1)), "encoder").passed
    run = turned(
        translator.force("one two three four five", "two one four three"), AttentionKind.CROSS, 2
    )
    for layers, passes in ((range(3), False), (range(2), True)):
        mean = Aligner(tuple((layer, head) for layer in layers for head in range(4)), "predicted")
        assert LinkRules(mean, "strongest", None).audit(view_of(run)).passed == passes


RULES = {
    "scaled": ({}, "q·k ÷ √d_k"),
    "relative": ({"positions": "shaw"}, "(q·k + bias of positions) ÷ √d_k"),
    "linear": ({"positions": "alibi"}, "q·k ÷ √d_k + bias of positions"),
    "undivided": (
        {"positions": "t5", "scaled_scores": False},
        "q·k + bias of positions, which this model does not divide",
    ),
    "plain": ({"scaled_scores": False}, "q·k, which this model does not divide"),
}


@pytest.mark.parametrize("name", RULES)
def test_the_table_of_a_cell_says_how_its_score_comes_from_query_and_key(
    name: str, tokenizer
) -> None:
    config, told = RULES[name]
    model = random_model(vocab_size=tokenizer.vocab_size, **config)
    record = (
        Translator(model, tokenizer, name=name).translate("one two three").trace.layer("encoder", 1)
    )
    assert score_rule(record) == told
    query, key = (array[0].double() for array in (record.query, record.key))
    product = float(query[1] @ key[2])
    bias = record.map(slice(0, 1)).bias
    added = 0.0 if bias is None else float(bias[0, 1, 2])
    root = np.sqrt(query.shape[-1])
    score = {
        "(q·k + bias of positions) ÷ √d_k": product / root
        + added,  # a bias as it stands in the score
        "q·k ÷ √d_k": product / root,
        "q·k ÷ √d_k + bias of positions": product / root + added,
    }.get(told, product + added)
    assert float(record.map(slice(0, 1)).scores[0, 1, 2]) == pytest.approx(score, abs=1e-4)


# --- moves that come with the choice of another model --------------------------------------------

SIZES = {"encoder": (2, 4), "cross": (3, 4)}
OPENED = SimpleNamespace(translation=SimpleNamespace(config=SimpleNamespace(sizes=SIZES)))
SCENE = explorer.Scene(SimpleNamespace(), OPENED, ("encoder",))
OTHERS = [
    State(model="another"),  # its heads are not known yet
    State(encoder=(0, 0), cross=(3, 0)),
    State(encoder=(1, 4), cross=(2, 3)),
]


class AgainError(Exception):
    """The page is run again."""


def again() -> None:
    raise AgainError


@pytest.mark.parametrize("state", OTHERS)
def test_a_view_whose_model_is_no_longer_chosen_moves_nothing_and_runs_the_page_again(
    state, monkeypatch
):
    monkeypatch.setattr(session, "current", lambda: state)
    monkeypatch.setattr(session, "on_linked_view", lambda *_: pytest.fail("the move was taken"))
    monkeypatch.setattr(session, "rerun", again)
    explorer._moved(SCENE, SimpleNamespace())
    with pytest.raises(AgainError):
        explorer._current(SCENE)
    fits = State(encoder=(1, 3), cross=(2, 3))
    monkeypatch.setattr(session, "current", lambda: fits)
    assert explorer._current(SCENE) is fits


# --- going on with a candidate -------------------------------------------------------------------

TEXT, STEP = "one two three four", 2


def other(run: Translation, step: int, rank: int = 1) -> int:
    return run.steps[step].alternatives[rank].token_id


def test_greedy_search_keeps_its_tokens_writes_the_other_and_needs_no_change_for_its_own(
    translator,
):
    base = translator.translate(TEXT)
    candidate = base.steps[STEP].alternatives[3]
    changed = translator.translate(TEXT, interventions=changes(base, STEP, candidate.token_id))
    assert changed.interventions == (do.choose(STEP, candidate.token),)
    assert changed.target_ids[: STEP + 1] == (*base.target_ids[:STEP], candidate.token_id)
    assert changed.steps[STEP].alternatives == base.steps[STEP].alternatives
    assert changed.log_probs[STEP] == pytest.approx(candidate.log_prob)
    assert changes(changed, STEP, base.target_ids[STEP]) == ()


def test_an_earlier_choice_and_a_change_of_the_model_stay_and_a_later_choice_ends(
    translator: Translator,
):
    run = base = translator.translate(TEXT)
    for step in (1, 3):
        run = translator.translate(TEXT, interventions=changes(run, step, other(run, step)))
    assert [intervention.step for intervention in run.interventions] == [1, 3]
    assert [change.step for change in changes(run, 2, other(run, 2))] == [1, 2]
    ablated = do.ablate("cross", 0, 0, "zero")
    run = translator.translate(TEXT, interventions=[ablated])
    first = run.steps[STEP].alternatives[0]
    assert changes(run, STEP, first.token_id) == (ablated, do.choose(STEP, first.token))
    assert changes(base, STEP, base.target_ids[STEP]) == ()


@pytest.mark.parametrize("way", ["beam", "sample", "forced"])
def test_any_other_way_of_decoding_is_given_the_tokens_before(translator: Translator, way: str):
    ways = {
        "beam": lambda **more: translator.translate(TEXT, beam_size=3, **more),
        "sample": lambda **more: translator.translate(TEXT, sample=Sampling(seed=4), **more),
        "forced": lambda **more: translator.force(TEXT, "eins zwei drei vier", **more),
    }
    base = ways[way]()
    prefix = [*base.target_ids[:STEP], other(base, STEP, 2)]
    taken = changes(base, STEP, prefix[-1])
    assert taken == (do.prefix(prefix),)
    went_on = ways["beam" if way == "forced" else way](interventions=taken)
    assert [*went_on.target_ids[: STEP + 1]] == prefix


# --- copied as Python ----------------------------------------------------------------------------

CAT = 'The cat said: "old".'
CHANGES = (do.ablate("cross", 0, 1, "zero"), do.hide(1))


@pytest.mark.parametrize(
    ("decode", "target", "changed"),
    [
        ("greedy", None, ()),
        ("beam-3", None, CHANGES),
        ("sample-7", None, ()),
        ("greedy", "Die Katze ist alt.", CHANGES),
    ],
)
def test_the_copied_calls_give_the_same_run_and_head(decode: str, target, changed, monkeypatch):
    monkeypatch.chdir(models.ROOT)
    run_key = RunKey(named("en-de"), CAT, decode, target, changed)
    own = runs.translate(run_key)
    look: Any = SimpleNamespace(opened=SimpleNamespace(run_key=run_key), kind="cross", head=(2, 1))
    code = calls(look)
    found = dict[str, Any]()
    exec(code, found)
    assert found["t"].target_ids == own.target_ids
    assert np.array_equal(found["view"].weights, own.head("cross", 2, 1).weights)
    assert "load_translator('assets/models/en-de')" in code


@pytest.mark.parametrize(("decode", "write"), [("greedy", 9), ("beam-3", 6), ("greedy", 0)])
def test_the_copied_calls_continue_a_text_too(
    decode: str, write: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(models.ROOT)
    target = None if write else "The old house"
    run_key = RunKey(named("language/lm-en"), "The old house", decode, target, write=write)
    own = runs.translate(run_key)
    look: Any = SimpleNamespace(
        opened=SimpleNamespace(run_key=run_key), kind="decoder", head=(2, 1)
    )
    found = dict[str, Any]()
    exec(calls(look), found)
    assert found["t"].target_ids == own.target_ids
    assert np.array_equal(found["view"].weights, own.head("decoder", 2, 1).weights)
