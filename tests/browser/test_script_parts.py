"""The smallest parts of the scripts alone, in Chromium: what they draw, say and paint."""

import json
from itertools import product
from typing import Any

import numpy as np
import pytest

from explorer.app.controls.slots import SlotPicture
from explorer.figures.base.strips import Strip, strips_spec, vectors_spec
from explorer.figures.pages.inside import LedgerRow, ledger_spec
from explorer.linked.view.strips import chips as chips_of
from explorer.linked.view.strips import shaded
from explorer.linked.view.wire import Shade

from .conftest import SCRIPTS

VIEW, PAGE = (f"{SCRIPTS}/{name}" for name in ("linked_view", "page"))

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


@pytest.mark.parametrize(("elsewhere", "focused"), [("nowhere", "view"), ("typing", "box")])
def test_a_view_that_is_built_anew_takes_the_focus_that_the_old_one_had(
    scripts_alone: Any, elsewhere: str, focused: str
) -> None:
    given = {"script": f"/{VIEW}/view.js", "elsewhere": elsewhere}
    assert scripts_alone.evaluate(REBUILT, given) == focused


TWICE = """async ({ script, order }) => {
  const { show } = await import(script);
  const data = { view: order.join(), layout: "page", strips: ["source"], plots: [], focus: "cross", cursor: "step",
                 trace: "new", step: 0, source: null, ack: 0 };
  const there = document.body.appendChild(document.createElement("div"));
  const mounts = { kept: { data, parentElement: there, setStateValue() {} },
                   stale: { data: { ...data, trace: "old" }, parentElement: document.createElement("div"),
                            setStateValue() {} } };
  const leave = Object.fromEntries(order.map((name) => [name, show(mounts[name])]));
  leave.stale();
  const drawn = there.querySelectorAll(".lv").length;
  leave.kept();
  return [drawn, there.childElementCount];
}"""


@pytest.mark.parametrize("order", [["kept", "stale"], ["stale", "kept"]], ids=" ".join)
def test_a_view_that_is_mounted_twice_for_a_moment_stays_in_the_place_that_is_left(
    scripts_alone: Any, order: list[str]
) -> None:
    given = {"script": f"/{VIEW}/view.js", "order": order}
    assert scripts_alone.evaluate(TWICE, given) == [1, 0]


PROVED = """({ script, order }) => import(script).then(({ Inbox }) => {
  const told = [];
  const inbox = new Inbox({ root: {}, suit() {}, draw: () => told.push("draw"), reword: (names) => told.push(names) });
  inbox.trace = "now";
  const checking = { text: "… checking", waits: true };
  const feeds = {
    cross: { name: "cross", trace: "now", badge: checking, caption: "a head" },
    wall: { name: "wall", trace: "now", badge: checking, caption: "tiles" },
    old: { name: "old", trace: "before", badge: checking, caption: "" },
    own: { name: "own", trace: "now", badge: { text: "✗ not verified" }, caption: "another head" },
    proof: { name: "proof", draw: "proof", trace: "now",
             badges: { cross: { text: "✓ verified" }, wall: { text: "✓ all" }, old: { text: "✗" },
                       own: { text: "✓ verified" } } },
  };
  for (const name of order) inbox.receive(feeds[name]);
  const same = ["cross", "wall", "old"].every((name) => inbox.feeds[name] === feeds[name]);
  const { cross, wall, old } = inbox.feeds;
  const badges = [cross, wall, old, inbox.feeds.own].map((feed) => feed.badge.text);
  return [badges, same, told.filter((each) => each !== "draw")];
})"""


@pytest.mark.parametrize(
    ("order", "reworded"),
    [
        (["cross", "wall", "old", "proof", "own"], ["cross", "wall"]),
        (["own", "cross", "wall", "old", "proof"], ["cross", "wall"]),
        (["proof", "old", "wall", "cross", "own"], []),
    ],
    ids=["after", "last", "before"],
)
def test_a_proof_reaches_the_figures_of_its_run_in_any_order_and_draws_none_again(
    scripts_alone: Any, order: list[str], reworded: list[str]
) -> None:
    given = {"script": f"/{VIEW}/inbox.js", "order": order}
    badges, same, told = scripts_alone.evaluate(PROVED, given)
    assert badges == ["✓ verified", "✓ all", "… checking", "✗ not verified"]
    assert same
    assert told == [reworded]


STRIP = """({ side, spec, data, hovered }) => import("/VIEW/strips.js").then(({ Strips }) => {
  const current = () => ({ names: { predicts: data.target ?? [] } });
  const inbox = { spec: { strips: [side] }, at: { step: 0 }, position: () => 2, chosen: () => [], current };
  const strips = new Strips({ inbox });
  strips.draw({ direction: { [side]: "ltr" }, sides: { [side]: side }, ...data });
  strips.follow();
  strips.hover({ [side]: hovered });
  const texts = (name) => [...strips.root.querySelectorAll(name)].map((node) => node.textContent);
  const look = (e) => [e.classList.contains("lv-given"), e.style.getPropertyValue("--share"), e.title];
  return {
    direction: strips.root.firstChild.dir, words: texts(".lv-word"), on: texts(".lv-on"),
    hovered: texts(".lv-hovered"), side: strips.root.querySelector(".lv-side").textContent,
    glosses: [...strips.root.querySelectorAll(".lv-gloss")].map((e) => [e.textContent, e.title, e.className]),
    looks: [...strips.root.querySelectorAll(".lv-chip")].map(look),
  };
})""".replace("VIEW", VIEW)


def strip(scripts_alone: Any, side: str, hovered: Any = None, **data: Any) -> dict[str, Any]:
    """What a strip of tokens shows."""
    return scripts_alone.evaluate(STRIP, {"side": side, "data": data, "hovered": hovered})  # type: ignore[no-any-return]


def test_a_strip_runs_right_to_left_and_marks_whole_characters(scripts_alone: Any) -> None:
    chips = [{"text": "שלום", "first": 0, "last": 0}, {"text": "", "first": 1, "last": 1}]
    chips += [{"text": "€", "first": 2, "last": 3, "index": ""}]
    told = {"direction": {"source": "rtl"}, "source": chips}
    places = ([0, 1], [2, 3], [1, 4], [4, 5], None)
    drawn = [strip(scripts_alone, "source", hovered, **told) for hovered in places]
    for each in drawn:
        assert (each["direction"], each["words"], each["on"]) == ("rtl", ["שלום", "", "€"], ["€"])
    assert [each["hovered"] for each in drawn] == [["שלום"], ["€"], ["", "€"], [], []]


def test_a_gloss_says_where_it_comes_from(scripts_alone: Any) -> None:
    glosses = [{"text": "mice", "origin": origin} for origin in ("example", "alignment head")] + [
        None
    ]
    chips = [
        {"text": "Mäuse", "first": i, "last": i, "gloss": gloss} for i, gloss in enumerate(glosses)
    ]
    own, guessed = strip(scripts_alone, "target", given=0, target=chips)["glosses"]
    assert (own, guessed) == (
        ["mice", "", "lv-gloss"],
        ["mice", "from the alignment head", "lv-gloss"],
    )


def test_given_tokens_are_marked_and_a_shade_says_what_stands_behind_it(scripts_alone: Any) -> None:
    shades = [Shade(share=share, text=f"{share} of it") for share in (0.0, 0.25, 1.0, 0.5)]
    chips = shaded(chips_of(["▁one", "▁two", "▁three", "</s>"]), shades)
    drawn = strip(scripts_alone, "target", sides={"target": "text"}, given=2, target=chips)
    assert drawn["side"] == "text"
    assert [given for given, *_ in drawn["looks"]] == [True, True, False, False]
    assert [share for _, share, _ in drawn["looks"]] == ["0%", "25%", "100%", "50%"]
    assert [title for *_, title in drawn["looks"][2:]] == ["1.0 of it", "0.5 of it"]


CAPTION = """({ script, caption, badge }) => import(script).then((captions) => {
  const made = new captions[caption]({ acts: [], noted: () => "", view: {} });
  made.follow({ title: "", about: "", caption: "", badge }, { names: {}, steps: 1 }, 0);
  const shown = [made.title, made.caption].map((e) => e.querySelector(".lv-badge")).find(Boolean);
  return [shown.textContent, shown.classList.contains("lv-failed")];
})"""


def test_only_a_failed_check_is_drawn_as_failed(scripts_alone: Any) -> None:
    for caption, passed in product(("Full", "Brief"), (True, False)):
        badge = {
            "passed": passed,
            "text": "✓ verified" if passed else "✗ check failed",
            "title": "why",
        }
        given = {"script": f"/{VIEW}/captions.js", "caption": caption, "badge": badge}
        assert scripts_alone.evaluate(CAPTION, given) == [badge["text"], not passed], caption


FILLED = """({ folder, text }) => import(`/${folder}/rich.js`).then(({ fill }) => {
  const root = document.createElement("div");
  fill(root, text);
  return root.innerHTML;
})"""


def test_texts_become_bold_emphasis_tables_and_nothing_else(scripts_alone: Any) -> None:
    text = "**a** and *b* \\*c\\* <script>x</script>\n\n| | y |\n|--|--|\n| 1 | **2** |"
    assert scripts_alone.evaluate(FILLED, {"folder": PAGE, "text": text}) == (
        "<p><strong>a</strong> and <em>b</em> *c* &lt;script&gt;x&lt;/script&gt;</p>"
        "<table><tbody><tr><th></th><th>y</th></tr><tr><td>1</td><td><strong>2</strong></td></tr></tbody></table>"
    )


DRAWN = """async ({ folder, data, at }) => {
  const { Picture } = await import(`/${folder}/picture.js`);
  document.body.replaceChildren();
  document.body.style.width = "700px";
  const picture = new Picture(data.name);
  document.body.append(picture.root);
  picture.show(data);
  await new Promise((done) => setTimeout(done));
  picture.room = 700;
  picture.refresh({ ink: "#000000", family: "sans-serif" });
  const { axes } = picture.canvas;
  const left = axes.x.at(at.x), top = axes[at.axis ?? "y"].at(at.y);
  const pen = picture.canvas.canvas.getContext("2d");
  const scale = window.devicePixelRatio || 1;
  const labels = [...picture.root.querySelectorAll(".pic-tick, .pic-note")].map((e) => e.textContent);
  return {
    under: picture.canvas.under(left, top),
    colour: [...pen.getImageData(Math.round(left * scale), Math.round(top * scale), 1, 1).data],
    labels,
    caption: picture.words.textContent,
    label: picture.node.getAttribute("aria-label"),
  };
}"""


def drawn(scripts_alone: Any, spec: dict, **at: float) -> dict[str, Any]:
    """What a picture says and paints at a place, given in the values of its axes."""
    picture = SlotPicture("p", spec, "what it shows", "caption")
    given = {"folder": PAGE, "data": json.loads(json.dumps(picture.sent())), "at": at}
    return scripts_alone.evaluate(DRAWN, given)  # type: ignore[no-any-return]


def test_a_strip_says_the_number_under_the_pointer_and_paints_its_sign(scripts_alone: Any) -> None:
    spec = strips_spec([Strip("x", np.array([-2.0, 0.0, 1.0]), "length 2.24")])
    amber, clear, purple = (drawn(scripts_alone, spec, x=x, y=0) for x in (1, 2, 3))
    assert "−2.0" in amber["under"]
    assert "dimension 1" in amber["under"]
    assert clear["colour"][3] <= 2
    assert amber["colour"][0] > amber["colour"][2]
    assert purple["colour"][2] > purple["colour"][1]
    assert {"x", "length 2.24"} <= set(amber["labels"])
    assert (amber["label"], amber["caption"]) == ("what it shows", "caption")


def test_the_rows_of_vectors_are_the_tokens_beside_them(scripts_alone: Any) -> None:
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    spec = vectors_spec(values, ("die", "<b>", "die"), np.array([[10.0, 100.0]]), ("k", "q"), 1)
    below = drawn(scripts_alone, spec, x=2, y=2)
    assert "6.00" in below["under"]
    assert "600.00" in below["under"]
    assert [each for each in below["labels"] if not each.isdigit()] == ["die₁", "<b>", "die₂"]


def test_a_masked_key_has_no_number_under_the_pointer(scripts_alone: Any) -> None:
    row = LedgerRow("masked", np.array([1.0, 2.0]), masked=True)
    spec = ledger_spec("decoder", ("▁a", "▁b"), np.array([True, False]), [row])
    assert "1.000" in drawn(scripts_alone, spec, x=0, y=0)["under"]
    assert drawn(scripts_alone, spec, x=1, y=0)["under"] is None
