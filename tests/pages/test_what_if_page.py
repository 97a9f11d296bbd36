"""The page What if: what it can add, its list of changes, what a click changes, what changes
did."""

import math
import re
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from app_pages import LINKED, charts, feeds, run, said, slots, view, words
from streamlit.testing.v1 import AppTest

from explorer.app.server import examples, models
from explorer.app.shell import changed
from explorer.lenses.what_if.controls import random_heads
from transformer import Translator
from transformer import interventions as do
from transformer.run import Translation

TEXT, OTHER = "one two three four", "one two three five"
AT = ("cross", 2, 2)
"""The head of cross-attention that the page opens with."""
HEAD = do.scale("cross", 0, 1, 3.0)
WORD = do.hide(0)
LIFTED = do.mask("decoder", allow="future")
OFF = {"off": "1.hide_1"}
REDRAWS = {"Change", "Step", "Attention", "Mask", "The other sentence", "Put in", "Layer", "Side"}
"""Fields on which it depends what the fields after them are or offer."""


def opened(*changes: do.Intervention, **params: str) -> AppTest:
    more = {"changes": do.write_text(changes)} if changes else {}
    return run("pages/what_if.py", **{"model": "random", "text": TEXT, **more, **params})


@cache
def base() -> Translation:
    return models.find("random").load().translate(TEXT)


def patched(place: str, *ids: int) -> do.Intervention:
    other = models.find("random").load().translate(OTHER)
    return do.patch(place, other, [(i, i) for i in ids])


def form(
    group: str, sort: int, choices: dict[str, Any], *changes: do.Intervention, **params: str
) -> AppTest:
    """The page with a form open and filled in."""
    at = opened(*changes, **params)
    at.segmented_control(key="what-if.group").set_value(group).run()
    for label, value in (({"Change": sort} if sort else {}) | choices).items():
        boxes = (*at.selectbox, *at.text_input, *at.number_input)
        next(box for box in boxes if box.label == label).set_value(value)
        if label in REDRAWS:
            at.run()
    return at.run()


def click(at: AppTest, key: str) -> AppTest:
    return at.button(key).click().run()


def active(at: AppTest) -> list[do.Intervention]:
    assert not at.exception
    assert not at.error
    return list(do.read_text(at.query_params["changes"])) if "changes" in at.query_params else []


# --- what can be added ---------------------------------------------------------------------------

SENTENCE = {"The other sentence": OTHER}
STREAM = {"Put in": "stream", "Layer": 1, "Sub-layer": "feed_forward", "At": 1}
DECODER = {"Attention": "decoder"}
ENCODER = {"Attention": "encoder"}
ADDED: dict[tuple[str, int], list[tuple[dict[str, Any], Callable[[], do.Intervention]]]] = {
    ("Tokens", 0): [({"Replacement token": "three"}, lambda: do.edit_source(0, "▁three"))],
    ("Tokens", 1): [({"Source token": 2}, lambda: do.drop_source(2))],
    ("Tokens", 2): [({"Step": 1, "writes": 2}, lambda: do.choose(1, base().steps[1].alternatives[2].token))],
    ("Tokens", 3): [
        ({"at": 2}, lambda: do.forbid(base().target_tokens[0], 2)),
        ({}, lambda: do.forbid(base().target_tokens[0])),
    ],
    ("Heads", 0): [
        ({}, lambda: do.ablate(*AT)),
        ({"Head": -1, "What it gives instead": "uniform"}, lambda: do.ablate("cross", 2, None, "uniform")),
    ],
    ("Heads", 1): [({"Output times": -1.0}, lambda: do.scale(*AT, -1.0))],
    ("Attention", 0): [
        ({"Row of": 1, "Weight to": 2, "Weight": 0.75}, lambda: do.set_row(*AT, 1, {2: 0.75})),
    ],
    ("Attention", 1): [
        ({"Query": 1, "Key": 2}, lambda: do.mask("cross", forbid=[(1, 2)])),
        ({"Mask": "key", "Key": 3, "in": 1}, lambda: do.mask("cross", forbid=[(None, 3)], layer=1)),
        (ENCODER | {"Mask": "self"}, lambda: do.mask("encoder", forbid="self")),
        (ENCODER | {"Mask": "future"}, lambda: do.mask("encoder", forbid="future")),
        (DECODER | {"Mask": "past"}, lambda: do.mask("decoder", forbid="past")),
        (DECODER | {"Mask": "next"}, lambda: do.mask("decoder", allow="next")),
        (DECODER | {"Mask": "seen", "Key": 2}, lambda: do.mask("decoder", allow=[(0, 2)])),
        (DECODER | {"Mask": "shown", "Key": 2}, lambda: do.mask("decoder", allow=[(None, 2)])),
    ],
    ("Arithmetic", 0): [({"Temperature": 0.5}, lambda: do.temperature(*AT, 0.5))],
    ("Arithmetic", 1): [({"Layer": 0}, lambda: do.unscaled("cross", 0, 2))],
    ("Arithmetic", 2): [({"Side": "decoder"}, lambda: do.no_positions("decoder"))],
    ("Arithmetic", 3): [(
        {"Side": "decoder", "Layer": 1, "Sub-layer": "cross_attention"},
        lambda: do.drop_sublayer("decoder", 1, "cross_attention"),
    )],
    ("Arithmetic", 4): [({"Norm": (1, "feed_forward")}, lambda: do.drop_norm("encoder", 1, "feed_forward"))],
    ("Another sentence", 0): [
        (SENTENCE, lambda: patched("encoder.output", 3)),
        (SENTENCE | {"Put in": "embeddings", "At": "shared"}, lambda: patched("encoder.input", 0, 1, 2, 4)),
        (SENTENCE | STREAM, lambda: patched("encoder.1.feed_forward.stream", 1)),
        (SENTENCE | {"Put in": "head", "At": 0}, lambda: patched(do.head_output(*AT), 0)),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("group", "sort"), ADDED)
def test_a_sort_of_change_is_added_as_it_is_filled_in(group, sort):
    for choices, change in ADDED[group, sort]:
        assert active(click(form(group, sort, choices), "what-if.add")) == [change()], choices


@pytest.mark.parametrize(
    ("group", "sort", "choices", "changes", "told"),
    [
        ("Tokens", 0, {"Replacement token": "xyzzy"}, [], "no single token for “xyzzy”"),
        ("Tokens", 1, {}, [do.edit_source(0, "▁three")], "Two changes decide source token 1"),
        (
            "Another sentence",
            0,
            {"The other sentence": "one two", "At": "all"},
            [],
            "not every token has a",
        ),
        (
            "Another sentence",
            0,
            {"The other sentence": TEXT},
            [],
            "No word of one sentence stands where",
        ),
        ("Another sentence", 0, {}, [], None),
    ],
)
def test_what_cannot_be_added_says_why_and_stays_in_its_fields(group, sort, choices, changes, told):
    at = form(group, sort, choices, *changes)
    assert at.button("what-if.add").disabled
    assert [told in each.value.replace("\\", "") for each in at.warning] == [True] * (
        told is not None
    )
    values = {box.label: box.value for box in (*at.selectbox, *at.text_input)}
    assert values.items() >= ({"Change": sort} | choices).items()


def test_lifting_the_causal_mask_keeps_to_the_translation_without_changes_and_says_so():
    at = form("Attention", 1, DECODER | {"Mask": "lift"})
    assert "While decoding, later tokens do not exist" in words(at)
    assert active(click(at, "what-if.add")) == [LIFTED]
    assert at.query_params["target"] == base().text
    assert "is given, so it cannot change" in words(at)
    assert "stays the same" not in words(at)
    click(at, "what-if.decode")
    assert (active(at), "target" in at.query_params) == ([], False)
    at.checkbox[0].check().run()
    assert (active(at), at.query_params["target"]) == ([LIFTED], base().text)


# --- the list ------------------------------------------------------------------------------------


def test_a_change_is_switched_off_without_losing_it_and_on_again_in_its_place():
    at = opened(WORD, HEAD)
    assert [each.label.replace("\\", "") for each in at.checkbox] == [
        "source token 1, “one”, is hidden from cross-attention",
        "cross-attention, layer 1, head 2 times 3",
    ]
    at.checkbox[0].uncheck().run()
    assert (active(at), at.query_params["off"]) == ([HEAD], "1.hide_1")
    assert "(off)" in at.checkbox[0].label
    again = opened(HEAD, **OFF)
    assert [each.value for each in again.checkbox] == [False, True]
    assert bars(again) == bars(opened(HEAD)), "what is off changes nothing"
    again.checkbox[0].check().run()
    assert (active(again), "off" in again.query_params) == ([WORD, HEAD], False)


def test_a_change_that_is_refused_says_why_and_can_be_switched_off_or_removed():
    at = opened(do.ablate("cross", 8, 0, "zero"), HEAD)
    assert "There is no layer 9" in said(at)
    at.checkbox[0].uncheck().run()
    assert "There is no layer 9" not in said(at)
    assert active(at) == [HEAD]
    page = run(
        "pages/what_if.py", model="en-de", text="He lives here.", changes="mask_decoder_next"
    )
    (refused,) = page.error
    assert "later tokens do not exist yet" in refused.value
    assert not page.get("progress"), "nothing is loading"


CURSOR = {"kind": "cross", "cross": "2.1", "step": "2", "source": "3"}


@pytest.mark.parametrize(
    ("changes", "params", "key", "after"),
    [
        ([HEAD], OFF, "changed.0", [HEAD]),
        ([HEAD], {}, "changed.0", []),
        ([HEAD], OFF, "changed.none", []),
        (
            [WORD],
            {"kind": "decoder", "decoder": "2.3"},
            "what-if.switch",
            [WORD, do.ablate("decoder", 1, 2)],
        ),
        ([do.ablate("decoder", 1, 2)], {"kind": "decoder", "decoder": "2.3"}, "what-if.switch", []),
        ([WORD], CURSOR, "what-if.switch", [WORD, do.ablate("cross", 1, 0)]),
    ],
)
def test_a_click_changes_the_list_and_leaves_the_cursor(changes, params, key, after):
    at = click(opened(*changes, **params), key)
    assert active(at) == after
    assert "off" not in at.query_params
    assert all(
        at.query_params[name] == params[name] for name in ("step", "source") if name in params
    )


def test_a_click_on_a_word_hides_it_and_another_click_shows_it_again():
    far = do.hide(70)
    for before, text, note in (([HEAD], TEXT, False), ([far], " ".join(["one", "two"] * 36), True)):
        at = opened(*before, text=text)

        def pills(at=at):
            groups = at.get("button_group")
            return next(group for group in groups if group.label.startswith("Click"))

        pills().set_value([1]).run()
        assert active(at) == [*before, do.hide(1)]
        pills().set_value([]).run()
        assert active(at) == before
        assert ("The first 64 tokens" in words(at)) == note


# --- what the changes did ------------------------------------------------------------------------


def bars(at: AppTest) -> list[float]:
    return next(
        list(one["x"]) for chart in charts(at) for one in chart["data"] if one["type"] == "bar"
    )


def test_a_tiny_change_is_told_and_coloured_with_the_digits_that_it_needs():
    at = opened(do.scale("cross", 0, 0, 1.0005), kind="decoder")
    told = words(at).replace("\\", "")
    assert re.search(r"Σ\|Δ\| 0\.00*[1-9] nats", told)
    assert "+0.00 nats" not in told
    assert not re.search(r"= 0\.0+ nats", told)
    ticks = [(chart, chart["layout"].get("xaxis", {}).get("ticktext", ())) for chart in charts(at)]
    (tiles,) = (each for each, names in ticks if {"H1", "H2"} <= set(names))
    texts = [each["text"] for each in tiles["layout"]["annotations"]]
    assert any(text.startswith("0.0") for text in texts)
    assert not any(text.startswith("0.00<") or text == "0.00" for text in texts)


def test_a_change_of_a_head_stands_among_the_same_change_at_other_heads():
    at = opened(WORD, HEAD)
    translator = models.find("random").load()
    expected = random_heads(translator, TEXT, base().target_ids, HEAD, [WORD])
    (chart,) = [
        each for each in charts(at) if len(each["data"]) == 2 and each["data"][0]["type"] == "bar"
    ]
    assert chart["data"][0]["x"] == pytest.approx([expected.effect])
    assert chart["data"][1]["x"] == pytest.approx(expected.effects)
    told = f"(dots: all 3 others); {expected.as_large} of 3 move it as far"
    assert told in words(at).replace("\\", "")
    assert ", beside the other change, and by the same change" in words(at)
    assert "There is no control" in words(opened(do.ablate("cross", 0)))
    assert "The same change at other heads" not in words(opened(WORD))


# --- the line about changes on every page --------------------------------------------------------

CHOSEN = do.write_text([do.choose(1, "▁drei")])
ABLATED = do.write_text([do.ablate("cross", 0, 0, "zero")])


def line(at: AppTest) -> list[str]:
    return [each.value for each in at.caption if "active" in each.value]


@pytest.mark.parametrize("page", LINKED)
def test_every_page_shows_the_run_with_another_token_and_says_so(page: str):
    at = run(page, changes=CHOSEN)
    assert ["1 change is active" in told for told in line(at)] == [True]
    assert at.button("changed.0").label == "step 2 writes “drei”"
    assert view(at)["trace"] != view(run(page))["trace"]
    at.text_input[0].set_value("one two").run()
    assert line(at) == [], "a new sentence starts without changes"


def test_the_translation_before_the_last_change_is_one_click_away():
    at = run(changes=f"{CHOSEN}~{ABLATED}")
    assert "2 changes are active" in line(at)[0]
    at.button("changed.back").click().run()
    assert at.query_params["changes"] == CHOSEN
    at.button("changed.back").click().run()
    assert "changes" not in at.query_params
    assert view(at)["trace"] == view(run())["trace"]


def test_pages_of_the_model_itself_and_the_changed_head_leave_arithmetic_out_and_say_so():
    for page in ("pages/whole_model.py", "pages/masks.py"):
        assert "the model's own arithmetic" in line(run(page, changes=ABLATED))[0]
    other = {"model": "random", "text": TEXT, "changes": ABLATED}
    at = run("pages/inside_a_head.py", **other, cross="2.2")
    assert "the model's own arithmetic" not in line(at)[0]
    assert view(at)["trace"] == view(run("pages/cross_attention.py", **other))["trace"]
    assert (
        slots(at).keys()
        == slots(run("pages/inside_a_head.py", model="random", text=TEXT, cross="2.2")).keys()
    )
    assert "✗" not in str(slots(at))
    at = run("pages/inside_a_head.py", changes=ABLATED, cross="1.1")
    assert "This head is itself changed" in said(at)
    assert not slots(at)


@pytest.mark.parametrize(
    "text", ["magic_1", "hide_two", "choose_x_y", "~~", "ablate_cross_1_1_rage"]
)
def test_changes_that_cannot_be_read_are_named(text: str):
    at = run(changes=text)
    assert ("changes" in said(at), line(at)) == (True, [])


def test_a_claim_about_an_example_is_made_of_its_head_in_the_model_as_it_is_only():
    example = examples.of(models.find("en-de")).examples[0]
    assert (example.claim.layer, example.claim.head) != (0, 0)
    for more in ({}, {"changes": ABLATED}, {"cross": "1.1"}):
        strips = feeds(run(model="en-de", text=example.text, **more))["strips"]
        assert (strips["claim"] is None) == bool(more)


def test_a_line_that_leads_back_to_nothing_possible_is_left_out(monkeypatch: pytest.MonkeyPatch):
    translate = Translator.stream

    def only_both(self: Translator, *given: object, **more: object):
        if len(more.get("interventions", ())) == 1:
            raise do.InterventionError("This change needs the other one.")
        return translate(self, *given, **more)

    monkeypatch.setattr(Translator, "stream", only_both)
    at = run(text="two three", changes=f"{CHOSEN}~{ABLATED}")
    assert at.button("changed.0")
    assert "changed.back" not in [each.key for each in at.button]


def test_what_a_change_did_is_said_in_one_line():
    def made(*steps: tuple[str, int, float], task: str = "translate") -> SimpleNamespace:
        names = ("token", "token_id", "log_prob")
        made = [SimpleNamespace(**dict(zip(names, step, strict=True))) for step in steps]
        return SimpleNamespace(
            config=SimpleNamespace(task=task, writes=True),
            predictions=dict(enumerate(made)),
            steps=tuple(made),
            fills={},
            source_tokens=("▁a", "</s>"),
        )

    first = ("▁a", 1, math.log(0.9))
    changed_steps = (("▁a", 1, math.log(0.899)), ("▁b", 2, math.log(0.99)))
    before = made(first, ("▁b", 2, math.log(0.997)))
    same = made(*changed_steps)
    other = made(first, ("▁c", 3, math.log(0.6)))
    said = "Translation unchanged; the probability of"
    assert changed.verdict(before, same) == f"{said} “b” 99.7 → 99.0\u00a0%."
    assert changed.verdict(before, before) == f"{said} “a” stays at 90.0\u00a0%."
    assert "at step 2, “b” became “**c**”" in changed.verdict(before, other)
    shorter = made(first, task="continue")
    assert changed.verdict(before, shorter) == "The text has another length."
    written = made(*changed_steps, task="continue")
    assert changed.verdict(before, written).startswith(
        "Text unchanged; the probability of “b” 99.7"
    )
