"""What hypothesis draws: JSON and texts that were damaged in a few places, the same in every
run."""

import copy
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

PROPERTY = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    suppress_health_check=list(HealthCheck),
)
"""Few examples, always the same ones, and no limit of time."""
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from(
        [10**400, 2**31, 1e400, -1e400, float("nan"), 0.5, "", "a", "\ud800", "x" * 500, "1"]
    ),
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("a"), inner)
)
SIGNS = st.text("_~%.-,:;<> 0123456789aexn▁é²\u2028", max_size=3)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or object within a JSON value, with a key of it."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in list(keys):
        yield value, key
        yield from places(value[key])


@st.composite
def damaged(draw: st.DrawFn, whole: Any) -> Any:
    """A JSON value with one or two parts left out, replaced, named otherwise, or there twice."""
    value = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 2))):
        if not (known := list(places(value))):
            return draw(JSON)
        part, key = draw(st.sampled_from(known))
        what = draw(st.sampled_from(("gone", "other", "other", "other", "named", "twice")))
        if what == "gone":
            del part[key]
        elif what == "other":
            part[key] = draw(JSON)
        elif isinstance(part, dict):
            part["named otherwise"] = part[key] if what == "twice" else part.pop(key)
        else:
            part.insert(key, copy.deepcopy(part[key]))
    return value


@st.composite
def garbled(draw: st.DrawFn, text: str) -> str:
    """A text with a few signs left out, put in, or there twice, in one or two places."""
    for _ in range(draw(st.integers(1, 2))):
        start = draw(st.integers(0, len(text)))
        stop = draw(st.integers(start, min(len(text), start + 4)))
        text = text[:start] + draw(SIGNS) + text[draw(st.sampled_from((start, stop))) :]
    return text


def as_file(value: Any) -> Any:
    """A value as a JSON file gives it back."""
    return json.loads(json.dumps(value))


@contextmanager
def or_refused(*errors: type[Exception]) -> Iterator[None]:
    """What is done within may be refused, in one sentence that can stand on a page."""
    try:
        yield
    except errors as error:
        if not re.fullmatch(r"[^\n]{1,398}\.", str(error)):
            raise AssertionError(f"no sentence: {error}") from error
