"""Values of files that anybody may have written: JSON as typed values, and the header of a model
card."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from properties import PROPERTY, as_file, damaged
from refusals import refused

from transformer.storage import files
from transformer.storage.card import MOST_CHARACTERS, CardError, Header, paragraph, parse, scores
from transformer.storage.files import CheckpointError
from transformer.storage.typed import read_typed, typed


@dataclass(frozen=True)
class Part:
    """Part of a whole."""

    place: tuple[int, int]
    share: float | None


@dataclass(frozen=True)
class Whole:
    """Something with everything that a file holds."""

    name: str
    sizes: tuple[float, ...]
    parts: Mapping[str, tuple[Part, ...]]
    good: bool
    most: Part | None = None


WHOLE = Whole(
    "a", (1.5, 2.0), {"b": (Part((0, 1), 0.5), Part((2, 3), None))}, True, Part((4, 5), 1.0)
)


def test_a_file_gives_back_what_was_written_whatever_else_it_holds():
    values = as_file(asdict(WHOLE) | {"date": "2026-01-01"})
    assert typed(Whole, values) == WHOLE
    assert (
        typed(Whole, {name: value for name, value in values.items() if name != "most"}).most is None
    )
    sizes = typed(Whole, values | {"sizes": [1]}).sizes
    assert (sizes, type(sizes[0])) == ((1,), int)


@PROPERTY
@given(damaged(as_file(asdict(WHOLE))))
def test_a_damaged_file_is_refused_or_gives_back_what_it_says(values: Any):
    with suppress(ValueError):
        read = typed(Whole, values)
        assert typed(Whole, as_file(asdict(read))) == read


OTHER_TYPES: list[tuple[dict[str, object], str]] = [
    ({"sizes": [1.0, True]}, "True in number 2 of sizes of the file is no float"),
    ({"parts": {"b": [{"share": 1.0}]}}, "There is no place in number 1 of b of parts of the file"),
    ({"parts": {"b": [{"place": [0, 1, 2], "share": 1.0}]}}, "shorter|longer"),
]


@pytest.mark.parametrize(("damage", "reason"), OTHER_TYPES, ids=str)
def test_what_is_of_another_type_is_refused(damage: dict[str, object], reason: str, tmp_path: Path):
    values = as_file(asdict(WHOLE)) | damage
    with pytest.raises(ValueError, match=reason):
        typed(Whole, values)
    (tmp_path / "whole.json").write_text(json.dumps(values), encoding="utf-8")
    with refused(
        CheckpointError, r"whole\.json is (damaged; remove it|not valid JSON; it is damaged)"
    ):
        read_typed(tmp_path / "whole.json", partial(typed, Whole))


def nested(levels: int) -> dict[str, Any]:
    """Objects and lists within one another."""
    value: Any = []
    for _ in range(levels // 2):
        value = {"a": [value]}
    return {"a": value}


def test_json_is_written_a_line_a_field_and_read_within_limits(tmp_path: Path):
    path = tmp_path / "a.json"
    files.write_json(path, {"é": [1, 2.5], "b": None})
    assert path.read_text(encoding="utf-8") == '{\n  "\\u00e9": [1, 2.5],\n  "b": null\n}\n'
    assert files.read_json(path) == {"é": [1, 2.5], "b": None}
    for value, good in ((nested(30), True), (nested(32), False), ({"a": 1e308}, True)):
        path.write_text(json.dumps(value))
        if good:
            assert files.read_json(path) == value
        else:
            with refused(CheckpointError, "not valid JSON"):
                files.read_json(path)


def card(lines: str) -> str:
    return f"---\n{lines}\n---\n\n# Name\n"


def grown(levels: int, field: str) -> str:
    """A header that grows ninefold a level when its aliases are followed."""
    lines = ["a1: &a1 x"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(2, levels + 1)]
    return "\n".join([*lines, f"{field}: *a{levels}"])


UNREADABLE = [
    *(
        (grown(8, field), "uses YAML aliases, so it is not read.")
        for field in ("license", "model-index")
    ),
    ("a: [", "not valid YAML"),
    ("- 1", "not valid YAML with named values"),
    ("[" * 400, "not valid YAML"),
    ("? [a]\n: b", "not valid YAML"),
    ('license: "\\ud800"', "not valid YAML"),
    ('language: "\\UFFFFFFFF"', "not valid YAML"),
    ("\n".join(f"{' ' * i}a:" for i in range(40)), "not valid YAML"),
    ("a: " + "x" * (MOST_CHARACTERS - 2), "more than 65,536 characters"),
]


@pytest.mark.parametrize(("lines", "says"), UNREADABLE, ids=range(len(UNREADABLE)))
def test_a_header_that_cannot_be_read_is_refused_in_a_sentence(lines: str, says: str):
    with refused(CardError, says):
        parse(card(lines))
    trouble = Header.of(card(lines)).trouble
    assert says in trouble
    assert Header.of(card(lines)) == Header(trouble=trouble)
    assert scores(card(lines)) == ()


LONG = {"license": 100, "license_name": 200, "good_at": 200, "guided_alignment": 500}
"""The most characters of the texts that readers rely on."""


@pytest.mark.parametrize(
    ("lines", "header"),
    [
        (
            "language:\n- en\n- no\nlicense: 1.0\ngood_at: ~\nunknown: {a: [b]}",
            Header(("en", "no"), license="1.0"),
        ),
        ("language: en", Header(("en",))),
        ("a: " + "x" * (MOST_CHARACTERS - 3), Header()),
        (
            "\n".join(f"{name}: {'x' * most}" for name, most in LONG.items()),
            Header(**{name: "x" * most for name, most in LONG.items()}),
        ),
        (f"tags: [{'a,' * 1000}]\nlanguage: [{'x' * 200}]", Header(("x" * 200,))),
    ],
    ids=range(5),
)
def test_what_readers_rely_on_is_read_as_text(lines: str, header: Header):
    assert Header.of(card(lines)) == header


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("license: [a, b]", "license"),
        *(
            (f"{name}: {'x' * (most + 1)}", name)
            for name, most in LONG.items()
            if name != "good_at"
        ),
        ("language: [en, [de]]", "language"),
        (f"language: [{'x' * 201}]", "language"),
        (f"tags: [{'a,' * 1001}]\nlicense: [a]", "license and tags"),
    ],
)
def test_a_field_of_another_kind_or_length_is_left_out_and_named(lines: str, named: str):
    wrong = f"The card’s {named} cannot be read: not of the kind or length that it should be."
    assert Header.of(card(f"{lines}\ngood_at: news")) == Header(good_at="news", trouble=wrong)


def index(value: str, name: str = "a test") -> str:
    metric = f"      - {{type: bleu, value: {value}, name: greedy}}"
    result = f"    - dataset: {{name: {name}}}\n      metrics:\n{metric}"
    return card(f"model-index:\n  - name: m\n    results:\n{result}")


def test_scores_and_paragraphs_are_read_off_a_card():
    (score,) = scores(index("12.5"))
    assert (score.dataset, score.metric, score.value, score.how) == (
        "a test",
        "bleu",
        12.5,
        "greedy",
    )
    assert len(scores(index("1", "x" * 300))) == 1
    text = index("12.5") + "\n\n# A model\n\n## Training\n\nTwo hours\non one core.\n\n## Data\n"
    assert paragraph(text, "Training") == "Two hours on one core."
    assert paragraph(text, "Elsewhere") == ""
    for wrong in ("much", ".nan", "nan", "1e999", "[1]", ":".join(["1"] * 200)):
        assert scores(index(wrong)) == (), wrong
    assert scores(index("1", "[a]")) == scores(index("1", "x" * 301)) == ()
    for unreadable in ("", "# x", card("model-index:\n  - 3")):
        assert scores(unreadable) == ()
