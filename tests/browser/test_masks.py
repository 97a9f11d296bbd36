"""Masks and comparisons in Chromium: frames and labels lie where they should."""

from .conftest import Visitor, case_link, playwright_api

MAPS = ".stMain .js-plotly-plot .heatmaplayer image"
PICTURES = f"document.querySelectorAll('{MAPS}').length"


def goto(visitor: Visitor, path: str, maps: int, **params: str) -> None:
    """Opens a page without a linked view and waits for its maps."""
    visitor.go(path, f"{PICTURES} === {maps}", **params)


FRAMED = """() => [...document.querySelectorAll('.stMain .js-plotly-plot')].map(plot => {
  const frame = getComputedStyle(plot.querySelector('.gl-container'), '::after');
  if (frame.content === 'none') return null;
  const place = name => parseFloat(frame[name]);
  const [host, map] = ['.svg-container', '.heatmaplayer image'].map(
    each => plot.querySelector(each).getBoundingClientRect());
  const row = map.height / plot.querySelectorAll('.ytick').length;
  return [place('left') + host.left - map.left, place('width') - map.width,
    (place('top') + host.top - map.top) / row, place('height') / row];
})"""


ONLY = """([row, count]) => {
  const places = (FRAMED)().filter(Boolean);
  const near = (one, other, most) => Math.abs(one - other) < most;
  return places.length === count && places.every(([left, width, top, height]) =>
    near(left, 0, 0.6) && near(width, 0, 0.6) && near(top, row, 0.05) && near(height, 1, 0.05));
}""".replace("FRAMED", FRAMED)


def framed(visitor: Visitor, row: int, count: int) -> None:
    """Waits until so many maps are framed, exactly at a row."""
    try:
        visitor.until(ONLY, [row, count])
    except playwright_api.TimeoutError:
        raise AssertionError(
            f"row {row} of {count} maps: {visitor.page.evaluate(FRAMED)}"
        ) from None


def test_the_row_of_the_cursor_is_framed_where_it_is_drawn(visitor: Visitor) -> None:
    goto(visitor, "masks", 7, **case_link("copy", step="2"))
    for row, width in ((1, 1400), (2, 320)):
        visitor.page.set_viewport_size({"width": width, "height": 844})
        framed(visitor, row, 4)
        visitor.press("ArrowRight")
        framed(visitor, row + 1, 4)
    goto(
        visitor,
        "what_if",
        3,
        view="compare",
        **case_link("copy", kind="cross", step="2", against="head-1.2"),
    )
    for width in (320, 1400):
        visitor.page.set_viewport_size({"width": width, "height": 844})
        framed(visitor, 1, 3)


CROWDED = """() => {
  const met = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  const box = (text) => text.getBoundingClientRect();
  return [...document.querySelectorAll('.stMain .js-plotly-plot')].flatMap(plot => {
    const [labels, titles] = ['.xtick text, .ytick text', '.annotation-text'].map(
      each => [...plot.querySelectorAll(each)]);
    return titles.flatMap(title => labels.filter(label => met(box(label), box(title))).map(
      label => `${label.textContent} / ${title.textContent}`));
  });
}"""


def test_long_labels_never_reach_the_titles(visitor: Visitor) -> None:
    text = "wwwwwwwwwwwwwwwwwwwwwww mmmmmmmmmmmmmmm onetwothreefour 日本語日本語日本語日本語"
    link = {"model": "random", "text": text, "kind": "encoder"}
    goto(visitor, "masks", 7, **link)
    assert visitor.page.evaluate(CROWDED) == []
    goto(visitor, "what_if", 3, view="compare", **link)
    assert visitor.page.evaluate(CROWDED) == []
