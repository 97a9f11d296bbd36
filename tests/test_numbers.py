"""Every number in the README and in the cards that comes from a shipped file is the one of that
file."""

import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from explorer.figures.base.labels import number

ROOT = Path(__file__).parents[1]
MODELS = ROOT / "assets" / "models"
DOCS = ROOT / "docs"


@cache
def read(name: str) -> Any:
    return json.loads((MODELS / name).read_text())


@cache
def words(path: Path) -> str:
    """The text of a file with single spaces."""
    return " ".join(path.read_text().split())


def gap(found: Any, form: str = "+.1f") -> str:
    """A difference with its interval, as tables give it."""
    value, low, high = (number(found["difference"][end], form) for end in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def twins() -> Iterator[str]:
    """The table of positional twins."""
    found = read("positions/results.json")
    none = found["cost"]["models"]["none"]["milliseconds"]
    at = [found["cost"]["lengths"].index(n) for n in (256, 1024)]
    for name in found["models"]:
        if found["models"][name]["other_seed"]:
            continue
        score = found["scores"][name]["bleu"]
        levels = found["long"]["levels"]
        beside = "–" if name == found["baseline"] else gap(score)
        long = " / ".join(
            f"{level['models'][name]['bleu']['value']['value']:.1f}" for level in levels
        )
        order = f"{found['shuffled']['models'][name]['bleu']['value']['value']:.0f}"
        times = found["cost"]["models"][name]["milliseconds"]
        ratios = " / ".join(
            "–" if times[i] is None else f"{round(times[i] / none[i], 2):g}" for i in at
        )
        cells = f"| {score['value']['value']:.1f} | {beside} | {long} | {order} |"
        yield f"{cells} {ratios} |"


def twin_card(folder: str, name: str) -> Iterator[str]:
    """The row of scores on a twin's card."""
    cell = read(f"{folder}/results.json")["scores"][name]
    own, loss = (cell[what]["value"]["value"] for what in ("bleu", "loss"))
    yield f"| Tatoeba test | 2,000 | {own:.2f} |"
    yield f"| {round(loss, 4)}"


def card(folder: str, name: str) -> Path:
    return MODELS / folder / name / "README.md"


STATEMENTS: dict[str, tuple[Path, Callable[[], Iterator[str]]]] = {
    "positional twins": (DOCS / "positions.md", twins),
} | {
    f"positions/{name}": (card("positions", name), partial(twin_card, "positions", name))
    for name in read("positions/results.json")["scores"]
    if card("positions", name).exists()
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_numbers_of_a_text_are_those_of_the_shipped_files(name: str) -> None:
    path, sentences = STATEMENTS[name]
    said = list(sentences())
    assert said
    for each in said:
        assert each in words(path), each
