"""The pointer lies over the picture of a run that has given way to one of which nothing has come
yet."""

from typing import Any

from explorer.figures.maps.lines import WeightLine
from explorer.lenses.words.reading import Reading, drawn_groups, read_view
from explorer.linked.view.feeds import lines_feed, map_feed, strongest_feed, whole_feed
from explorer.linked.view.strips import strips_feed
from transformer import Translator

from .conftest import PATIENCE, SCRIPTS

SCRIPT = f"/{SCRIPTS}/linked_view/view.js"
SHOWN = """async ({ script, feeds }) => {
  const { feed, show } = await import(script);
  const data = { view: "between", layout: "page", strips: ["source", "target"],
                 plots: ["map", "whole", "lines", "list"],
                 focus: "map", cursor: "step", trace: "old", step: 0, source: null, ack: 0 };
  const parentElement = document.body.appendChild(document.createElement("div"));
  window.go = (trace) => show({ data: { ...data, trace }, parentElement, setStateValue() {} });
  go("old");
  for (const each of feeds) feed({ data: each });
}"""
TOUCHED = """trace => {
  go(trace);
  const nodes = [...document.querySelectorAll(".lv-lines, text.lv-token, button.lv-token, .lv-act")];
  const plots = document.querySelectorAll(".lv-plot");
  for (const node of nodes) {
    const { left, top, width, height } = node.getBoundingClientRect();
    const at = { bubbles: true, clientX: left + width / 2, clientY: top + height / 2 };
    for (const name of ["enter", "move"]) node.dispatchEvent(new PointerEvent(`pointer${name}`, at));
    node.dispatchEvent(new PointerEvent("click", at));
  }
  const point = { points: [{ curveNumber: 0, x: 0, y: 1 }] };
  for (const plot of plots) for (const name of ["hover", "click"]) plot.emit(`plotly_${name}`, point);
  document.querySelector("[aria-label^='Take the tour']").click();
  for (const key of ["ArrowRight", "ArrowDown", "Home", " ", " ", "Escape"]) {
    document.querySelector(".lv").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  }
  return [nodes.length, document.querySelector(".lv-problem").hidden];
}"""


def test_a_pointer_and_keys_over_the_picture_of_an_old_run_do_nothing(
    scripts_alone: Any, translator: Translator
) -> None:
    run = translator.translate("one two three", max_length=5)
    view = read_view(run.head("cross", 0, 0), Reading())
    links = [WeightLine(i, j, 0.5) for i in range(len(view.rows)) for j in range(len(view.columns))]
    axes = drawn_groups(view.query_tokens, Reading()), drawn_groups(view.key_tokens, Reading())
    made: list[dict[str, Any]] = [
        {**strips_feed("old", run), "name": "strips"},
        {**map_feed("old", view), "acts": ["inside", "off"], "name": "map"},
        {**whole_feed("old", "cross", (view.weights, view.mask), axes), "name": "whole"},
        {**lines_feed("old", [view], [links], ""), "name": "lines"},
        {**strongest_feed("old", view), "name": "list"},
    ]
    feeds = [{**each, "view": "between"} for each in made]
    scripts_alone.evaluate(SHOWN, {"script": SCRIPT, "feeds": feeds})
    scripts_alone.wait_for_selector('.lv[data-ready="true"]', timeout=PATIENCE)
    touched, fine = scripts_alone.evaluate(TOUCHED, "new")
    assert touched > len(run.source_tokens)
    assert fine
    scripts_alone.evaluate("document.body.replaceChildren()")
