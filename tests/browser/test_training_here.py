"""Train here, in Chromium: start, see the curves move, reload, be watched, stop, keep, open elsewhere."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from explorer.app.server.workshop.plan import Plan, TrainingOrder
from explorer.app.server.workshop.run import RUN
from explorer.app.server.workshop.workshop import FOLDER
from transformer.text.pairs import SentencePair

from .conftest import PATIENCE, Visitor

pytestmark = pytest.mark.nightly

NAME = "from-the-browser"
POINTS = """least => {
  const all = [...document.querySelectorAll(".js-plotly-plot")].flatMap((each) => each._fullData ?? []);
  const line = all.find((each) => each.name === "validation loss");
  return (line?.y?.length ?? 0) >= least;
}"""


SMALL = Plan(task="copy", length=3, width=32, heads=2, layers=1, steps=2000)


@pytest.fixture
def clean(models: Path, app: str) -> Iterator[None]:
    """An earlier run fills the form with small sizes; afterwards the folder of models is as it was."""
    left = models / FOLDER / RUN
    left.mkdir(parents=True)
    TrainingOrder(SMALL, SentencePair("a b", "a b")).write(left)
    yield
    shutil.rmtree(models / NAME, ignore_errors=True)
    shutil.rmtree(models / FOLDER, ignore_errors=True)


def opened(visitor: Visitor) -> Visitor:
    visitor.page.goto(f"{visitor.base}/training?view=here&model=random&text=one two three")
    return visitor


def button(visitor: Visitor, name: str) -> object:
    return visitor.page.get_by_role("button", name=name, exact=True)


def shown(visitor: Visitor, name: str) -> None:
    button(visitor, name).wait_for(timeout=PATIENCE)


def test_a_visitor_trains_a_model_and_opens_it_everywhere(
    newcomer: Callable[..., Visitor], clean: None
) -> None:
    visitor = opened(newcomer())
    button(visitor, "Train").click(timeout=PATIENCE)
    shown(visitor, "Pause")
    visitor.until(POINTS, 1)
    visitor.until(POINTS, 2)
    visitor.page.reload()
    shown(visitor, "Stop")
    visitor.until(POINTS, 2)
    other = opened(newcomer())
    other.page.get_by_text("Another visitor began this run").wait_for(timeout=PATIENCE)
    assert button(other, "Stop").count() == 0
    other.page.goto("about:blank")
    button(visitor, "Stop").click()
    shown(visitor, "Keep")
    shown(opened(other), "Keep")
    visitor.page.get_by_role("textbox", name="Name of the model").fill(NAME)
    button(visitor, "Keep").click()
    visitor.until("name => location.search.includes(`model=${name}`)", NAME)
    visitor.link("cross_attention").click()
    visitor.ready()
    assert visitor.params()["model"] == NAME
