"""The pure functions of the linked view's scripts, in Chromium."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from explorer.figures.base import labels
from explorer.linked.view import Shade
from explorer.linked.view.strips import chips as chips_of
from explorer.linked.view.strips import shaded

from .conftest import STATIC

SCRIPTS = next(STATIC.glob("linked_view-*")).name
Call = Callable[..., Any]


# --- cursor.js ----------------------------------------------------------------------------------------------


def test_the_cursor_stays_within_the_translation(call: Call) -> None:
    now, room = {"step": 1, "source": 3}, {"steps": 5, "sources": 8}

    def moved(**change: int | None) -> tuple[int, int | None]:
        found = call("cursor.moved", now, change, room)
        return found["step"], found["source"]

    assert [moved(step=-1), moved(step=5), moved()] == [(0, 3), (4, 3), (1, 3)]
    assert [moved(source=-4), moved(source=None), moved(step=2, source=9)] == [(1, 0), (1, None), (2, 7)]


def test_the_server_moves_the_cursor_only_with_its_last_word(call: Call) -> None:
    at, told = {"step": 4, "source": None}, {"step": 2, "source": 6}
    now = {"at": at, "seq": 7, "trace": "one", "busy": False}

    def heard(ack: int, trace: str = "one", **other: object) -> object:
        return call("cursor.heard", {**now, **other}, {**told, "ack": ack, "trace": trace})

    assert heard(7) == {"at": told, "changed": True}
    assert heard(7, at=told) == {"at": told, "changed": False}
    assert heard(6) == heard(7, busy=True) == {"at": at, "changed": False}
    assert heard(0, trace="other", busy=True) == {"at": told, "changed": True}


def test_a_move_counts_until_the_server_has_heard_of_it(call: Call) -> None:
    def unheard(ack: int, trace: str = "one", untold: bool = False) -> object:
        now = {"seq": 7, "trace": "one", "untold": untold}
        return call("cursor.unheard", now, {"ack": ack, "trace": trace})

    assert unheard(6) is unheard(7, untold=True) is True
    assert unheard(7) is unheard(8, untold=True) is unheard(6, trace="other") is False


def test_the_source_follows_the_step_until_one_is_chosen(call: Call) -> None:
    follow = [2, 0, 5]
    expected = {(0, None): 2, (2, None): 5, (9, None): 5, (-1, None): 2, (1, 0): 0, (1, 4): 4}
    for (step, source), position in expected.items():
        assert call("cursor.sourceAt", {"step": step, "source": source}, follow) == position
    assert call("cursor.sourceAt", {"step": 3, "source": None}, []) == 0


KEYS = {
    "ArrowLeft": "back",
    "ArrowRight": "on",
    "PageUp": "back",
    "PageDown": "on",
    "Home": "first",
    "End": "last",
    "ArrowUp": "key back",
    "ArrowDown": "key on",
    "Escape": "release",
    " ": "play",
    "p": "present",
    "?": "keys",
    **dict.fromkeys(("a", "Tab", "constructor")),
}
"""What each key asks for; some ask for nothing."""


def test_keys_ask_for_what_the_label_of_the_view_says(call: Call) -> None:
    def asked(*more: object, **held: bool) -> dict[str, str | None]:
        return {key: call("cursor.command", {"key": key, **held}, *more) for key in KEYS}

    assert asked() == KEYS
    for modifier in ("altKey", "ctrlKey", "metaKey"):
        assert asked(**{modifier: True}) == dict.fromkeys(KEYS), modifier
    for button in ("BUTTON", "SUMMARY"):
        assert asked(button) == {**KEYS, " ": None}, button
    assert asked("SELECT") == {**dict.fromkeys(KEYS), "Escape": "release"}


def test_a_command_leads_to_a_position(call: Call) -> None:
    where = {asked: call("cursor.destination", asked, 2, 5) for asked in ("back", "on", "first", "last")}
    assert where == {"back": 1, "on": 3, "first": 0, "last": 4}
    assert call("cursor.destination", "back", 0, 5) == -1  # `moved` keeps it inside
    assert call("cursor.destination", "play", 0, 5) is None


def test_an_arrow_enters_the_keys_at_the_near_end(call: Call) -> None:
    assert call("cursor.nextColumn", None, 1, 6) == 0
    assert call("cursor.nextColumn", None, -1, 6) == 5
    assert call("cursor.nextColumn", 5, 1, 6) == 6
    assert call("cursor.nextColumn", 0, -1, 6) == -1


def test_play_begins_at_the_first_step_unless_it_was_stopped_here(call: Call) -> None:
    assert [call("cursor.playFrom", step, None, 4) for step in (0, 3, 4)] == [0, 0, 0]
    assert [call("cursor.playFrom", step, 3, 4) for step in (2, 3, 4)] == [0, 4, 0]
    assert [call("cursor.playFrom", 4, 4, 4), call("cursor.playFrom", 0, 0, 0)] == [0, 0]


def test_a_picked_cell_moves_only_what_lies_outside_it(call: Call) -> None:
    cross, own = {"rows": "step", "columns": "source"}, {"rows": "source", "columns": "source"}
    at = {"step": 3, "source": None}
    assert call("cursor.picked", cross, [5, 6], [2, 4], at, 3) == {"step": 5, "source": 2}
    assert call("cursor.picked", cross, [2, 4], [2, 4], {**at, "source": 3}, 3) == {}
    assert call("cursor.picked", cross, None, [0, 1], at, 3) == {"source": 0}
    assert call("cursor.picked", cross, [5, 6], None, at, 3) == {"step": 5}
    assert call("cursor.picked", own, [5, 6], [2, 4], at, 0) == {"source": 5}
    assert call("cursor.picked", own, None, [2, 4], at, 0) == {}


# --- spans.js -----------------------------------------------------------------------------------------------

WINDOW = [[16, 17], [17, 20], [21, 22]]
"""Part of a long sentence: a word of three pieces, then a hidden token."""


def test_a_token_is_found_in_a_window_of_words(call: Call) -> None:
    tokens = (15, 16, 17, 19, 20, 21, 22, None)
    assert [call("spans.holding", WINDOW, token) for token in tokens] == [-1, 0, 1, 1, -1, 2, -1, -1]
    assert [call("spans.reached", WINDOW, token) for token in tokens] == [-1, 0, 1, 1, 1, 2, 2, -1]
    assert call("spans.holding", [], 0) == call("spans.reached", [], 0) == -1
    assert call("spans.whole", WINDOW) == [16, 22]
    assert call("spans.whole", [[0, 1]]) == [0, 1]


def test_the_pointer_marks_the_same_tokens_in_every_figure(call: Call) -> None:
    spans = {"rows": WINDOW, "columns": [[0, 1], [1, 2]]}
    cross = {"rows": "step", "columns": "source", "spans": spans}
    own = {"rows": "source", "columns": "source", "spans": {"rows": spans["columns"], "columns": WINDOW}}
    places = call("spans.pointed", cross, [17, 20], [1, 2])
    assert places == {"step": [17, 20], "source": [1, 2]}
    assert call("spans.marked", cross, places, False) == {"row": 1, "column": 1}
    assert call("spans.marked", own, places, False) == {"row": 1, "column": -1}
    assert call("spans.marked", own, {"row": [0, 1], "column": [21, 22]}, True) == {"row": 0, "column": 2}
    assert call("spans.marked", cross, {"source": [7, 8]}, False) == {"row": -1, "column": -1}
    assert call("spans.marked", cross, None, False) == {"row": -1, "column": -1}
    assert call("spans.pointed", own, [4, 5], [1, 2]) == {"source": [4, 5]}
    assert call("spans.pointed", own, None, [1, 2]) == {"source": [1, 2]}


# --- values.js ----------------------------------------------------------------------------------------------


def test_arrays_come_as_base64_or_as_they_are(call: Call) -> None:
    assert call("values.decode", {"dtype": "f4", "bdata": "AAAAPwAAgD8="}) == [0.5, 1]
    assert call("values.decode", {"dtype": "u1", "bdata": "AAH/"}) == [0, 1, 255]
    assert call("values.decode", [0.25]) == [0.25]
    assert call("values.decode", None) is None


def test_the_strongest_come_first_and_the_others_are_added_up(call: Call) -> None:
    entries = [
        {"name": name, "weight": weight}
        for name, weight in zip("abcde", (0.1, 0, 0.5, 0.1, 0.3), strict=True)
    ]
    found = call("values.strongest", entries, 2)
    assert [each["name"] for each in found["listed"]] == ["c", "e"]
    assert found["more"] == 2
    assert math.isclose(found["rest"], 0.2)
    assert "".join(each["name"] for each in call("values.strongest", entries, 9)["listed"]) == "cead"
    assert call("values.strongest", [], 2) == {"listed": [], "more": 0, "rest": 0}


# --- text.js ------------------------------------------------------------------------------------------------

NAMES = {"reads": ["<s>", "ein"], "predicts": ["ein", "$& {reads}"], "source": ["שלום", ""]}


def test_titles_name_the_tokens_of_the_cursor(call: Call) -> None:
    about = "reads “{reads}”, predicts “{predicts}”"
    assert call("text.filled", about, NAMES, 0) == "reads “<s>”, predicts “ein”"
    assert call("text.filled", about, NAMES, 1) == "reads “ein”, predicts “$& {reads}”"
    assert call("text.filled", "row of “{source}”", NAMES, 0) == "row of “שלום”"
    assert call("text.filled", "row of “{source}”", NAMES, 1) == "row of “”"
    assert call("text.filled", "{step} of {else}", NAMES, 0) == "{step} of {else}"
    assert call("text.filled", "", NAMES, 0) == ""


def test_the_cursor_is_said_from_one(call: Call) -> None:
    at = {"step": 1, "source": 0}
    assert call("text.placeName", "step", at, NAMES) == "Step 2: reads ein, predicts $& {reads}."
    assert call("text.placeName", "source", at, NAMES) == "Source token 1: שלום."
    assert call("text.countName", "step", 0, 5) == "step 1 of 5"
    assert call("text.countName", "source", 7, 8) == "source token 8 of 8"


def test_what_is_escaped_for_plotly_reads_as_before(call: Call) -> None:
    texts = ["", "<b>1 & 2</b> #3", "&lt;", "&amp;lt;", "שלום", "&#35;"]
    escaped = [labels.escape(text) for text in texts]
    assert not set("".join(escaped).replace("&#35;", "")) & set("<>#")
    assert [call("text.plain", text) for text in escaped] == texts


def test_long_names_end_in_an_ellipsis(call: Call) -> None:
    assert call("text.shortened", "a" * 13, 13) == "a" * 13
    assert call("text.shortened", "a" * 14, 13) == "a" * 12 + "…"
    assert call("text.shortened", "", 13) == ""


# --- flow.js, race.js, keys.js ------------------------------------------------------------------------------


def test_a_link_leaves_downwards_and_arrives_from_above(call: Call) -> None:
    assert call("flow.curve", [10, 20], [50, 60]) == "M10 20C10 40 50 40 50 60"


RACE = {
    "names": [["</s>", "Haus"], ["a name of many letters"]],
    "shares": [["50 %", "25 %"], ["100 %"]],
    "logs": [math.log(0.5), math.log(0.25), 0.0, 0.0],
    "chosen": [0, -1],
    "ids": [[2, 7], [None]],
    "tried": [[7], []],
}


def test_candidates_are_read_step_by_step(call: Call) -> None:
    (first, second), (long,) = call("race.runners", RACE)
    assert (first["share"], first["log"]) == (pytest.approx(0.5), pytest.approx(math.log(0.5)))
    assert [first[name] for name in ("label", "name", "chosen", "text")] == ["</s>", "</s>", True, "50 %"]
    assert [(each["chosen"], each["id"], each["tried"]) for each in (first, second)] == [
        (True, 2, False),
        (False, 7, True),
    ]
    assert (long["label"], long["name"]) == ("a name of ma…", "a name of many letters")
    assert (long["chosen"], long["share"], long["id"], long["tried"]) == (False, 1, None, False)


def test_candidates_of_hardly_any_probability_are_one(call: Call) -> None:
    shares = [0.97, 0.02, 0.0005, 0.0004, 0.0003]
    names = [["a", "b", "c", "d", "e"]]
    told = {"names": names, "shares": [["x"] * 5], "logs": list(map(math.log, shares)), "chosen": [0]}
    (row,) = call("race.runners", {**RACE, **told, "ids": [[1, 2, 3, 4, 5]], "tried": [[4]]})
    assert [each["label"] for each in row] == ["a", "b", "d", "others"]
    assert row[-1]["share"] == pytest.approx(1 - 0.97 - 0.02 - 0.0004)
    assert (row[-1]["text"], row[-1]["id"]) == ("1.0 %", None)


def test_candidates_without_ids_cannot_be_chosen(call: Call) -> None:
    first, *_ = call("race.runners", {**RACE, "ids": [], "tried": []})[0]
    assert (first["id"], first["tried"]) == (None, False)


def test_keys_pressed_elsewhere_move_the_view_if_nothing_else_uses_them(call: Call) -> None:
    everything = {"back", "on", "keys", "present", "key on", "first", "play", "release"}

    def free(own: object, scrolls: bool) -> set[str]:
        where = {"own": own, "scrolls": scrolls}
        return {asked for asked in everything if call("keys.free", asked, where)}

    assert free(own=None, scrolls=False) == everything - {"release"}
    assert free(own=None, scrolls=True) == {"back", "on", "keys", "present"}
    assert free(own={}, scrolls=False) == set()


# --- view.js ------------------------------------------------------------------------------------------------

REBUILT = """async ({ script, elsewhere }) => {
  const { show } = await import(script);
  const data = { view: elsewhere, layout: "page", strips: [], plots: [], focus: "cross", cursor: "step",
                 trace: "abc", step: 0, source: null, ack: 0 };
  const host = () => document.body.appendChild(document.createElement("div"));
  const [first, second, box] = [host(), host(), host().appendChild(document.createElement("input"))];
  const leave = show({ data, parentElement: first, setStateValue() {} });
  first.querySelector(".lv").focus();
  if (elsewhere === "typing") box.focus();
  await new Promise((done) => setTimeout(done, 20));
  first.remove();
  leave();
  await new Promise((done) => setTimeout(done, 20));
  show({ data, parentElement: second, setStateValue() {} });
  const now = document.activeElement;
  const found = now === box ? "box" : second.contains(now) ? "view" : now.tagName;
  document.body.replaceChildren();
  return found;
}"""


def test_a_view_that_is_built_anew_takes_the_focus_that_the_old_one_had(scripts_alone: Any) -> None:
    def focused(elsewhere: str) -> str:
        return scripts_alone.evaluate(REBUILT, {"script": f"/{SCRIPTS}/view.js", "elsewhere": elsewhere})

    assert [focused("nowhere"), focused("typing")] == ["view", "box"]


# --- strips.js ----------------------------------------------------------------------------------------------

STRIP = """({ script, direction, chips, hovered }) => import(script).then(({ Strips }) => {
  const strips = new Strips({ spec: { strips: ["source"] }, at: { step: 0 }, position: () => 2 });
  strips.draw({ direction: { source: direction }, sides: { source: "source" }, source: chips });
  strips.follow();
  strips.hover({ source: hovered });
  const found = (name) => [...strips.root.querySelectorAll(name)].map(node => node.textContent);
  return [strips.root.firstChild.dir, found(".lv-word"), found(".lv-on"), found(".lv-hovered")];
})"""


def test_a_strip_runs_right_to_left_and_marks_whole_characters(scripts_alone: Any) -> None:
    chips = [{"text": "שלום", "first": 0, "last": 0}, {"text": "", "first": 1, "last": 1}]
    chips += [{"text": "€", "first": 2, "last": 3, "index": ""}]
    given = {"script": f"/{SCRIPTS}/strips.js", "direction": "rtl", "chips": chips}
    places = ([0, 1], [2, 3], [1, 4], [4, 5], None)
    drawn = [scripts_alone.evaluate(STRIP, {**given, "hovered": hovered}) for hovered in places]
    for each in drawn:
        assert each[:3] == ["rtl", ["שלום", "", "€"], ["€"]]
    assert [marked for *_, marked in drawn] == [["שלום"], ["€"], ["", "€"], [], []]


def test_a_gloss_says_where_it_comes_from(scripts_alone: Any) -> None:
    glosses = [{"text": "mice", "origin": origin} for origin in ("example", "alignment head")] + [None]
    chips = [{"text": "Mäuse", "first": i, "last": i, "gloss": gloss} for i, gloss in enumerate(glosses)]
    script = """({ script, chips }) => import(script).then(({ Strips }) => {
      const strips = new Strips({ spec: { strips: ["target"] } });
      strips.draw({ direction: { target: "ltr" }, sides: { target: "target" }, given: 0, target: chips });
      return [...strips.root.querySelectorAll(".lv-gloss")].map((e) => [e.textContent, e.title, e.className]);
    })"""
    own, guessed = scripts_alone.evaluate(script, {"script": f"/{SCRIPTS}/strips.js", "chips": chips})
    assert own == ["mice", "", "lv-gloss"]
    assert guessed == ["mice", "from the alignment head", "lv-gloss"]


CAPTION = """({ script, caption, badge }) => import(script).then((captions) => {
  const made = new captions[caption]({ acts: [], noted: () => "", view: {} });
  made.follow({ title: "", about: "", caption: "", badge }, { names: {}, steps: 1 }, 0);
  const shown = [made.title, made.caption].map((e) => e.querySelector(".lv-badge")).find(Boolean);
  return [shown.textContent, shown.classList.contains("lv-failed")];
})"""


def test_only_a_failed_check_is_drawn_as_failed(scripts_alone: Any) -> None:
    for caption, passed in product(("Full", "Brief"), (True, False)):
        badge = {"passed": passed, "text": "✓ verified" if passed else "✗ check failed", "title": "why"}
        given = {"script": f"/{SCRIPTS}/captions.js", "caption": caption, "badge": badge}
        assert scripts_alone.evaluate(CAPTION, given) == [badge["text"], not passed], caption


GIVEN = """({ script, chips }) => import(script).then(({ Strips }) => {
  const strips = new Strips({ spec: { strips: ["target"] } });
  strips.draw({ direction: { target: "ltr" }, sides: { target: "text" }, given: 2, target: chips });
  const shown = [...strips.root.querySelectorAll(".lv-chip")];
  const look = (e) => [e.classList.contains("lv-given"), e.style.getPropertyValue("--share"), e.title];
  return [strips.root.querySelector(".lv-side").textContent, shown.map(look)];
})"""


def test_given_tokens_are_marked_and_a_shade_says_what_stands_behind_it(scripts_alone: object) -> None:
    shades = [Shade(share=share, text=f"{share} of it") for share in (0.0, 0.25, 1.0, 0.5)]
    chips = shaded(chips_of(["▁one", "▁two", "▁three", "</s>"]), shades)
    name, looks = scripts_alone.evaluate(GIVEN, {"script": f"/{SCRIPTS}/strips.js", "chips": chips})
    assert name == "text"
    assert [given for given, *_ in looks] == [True, True, False, False]
    assert [share for _, share, _ in looks] == ["0%", "25%", "100%", "50%"]
    assert [title for *_, title in looks[2:]] == ["1.0 of it", "0.5 of it"]


def test_a_page_shows_the_models_of_most_pages_unless_it_is_named(call: Callable[..., Any]) -> None:
    assert call("menu.sortOf", "/app/language_model", {"language_model": "language"}) == "language"
    assert call("menu.sortOf", "/masks", {"language_model": "language"}) == ""
