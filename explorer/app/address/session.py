"""The visitor's state, kept in the session and written to the address.

No other file uses session keys.

The session holds the state; `state.py` beside it defines it. The first line of a page's full run
reads the address (after a link, the menu, Back); every change writes it once.
"""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import streamlit as st

from explorer.app.address.kinds import Moves
from explorer.app.address.parameters import KEEP, as_params, carried, parse
from explorer.app.address.state import KEYS, State, changed, cursor_of, elsewhere
from explorer.linked.view.events import (
    Cursor,
    CursorRange,
    picked_candidate,
    picked_head,
    presented,
    reduce,
)
from transformer.config import Head

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from explorer.lenses.heads.survey import Line
    from explorer.lenses.words.links import GoldPair

T = TypeVar("T", bound="DataclassInstance")
RUN: Moves = {
    "step": None,
    "source": None,
    "pairs": frozenset(),
    "gold": None,
    "node": None,
    "two": None,
}
"""Values that belong to one run of the model; another run starts without them."""
FRESH: Moves = {**RUN, "changes": (), "off": ()}
"""Values that belong to one sentence; a new one starts without them."""


V = TypeVar("V")
Take = Callable[[V], object] | str | None
"""Gets the value of a widget: a function, or a field of the state.

None is that of the widget's name.
"""


@dataclass
class Visit:
    """What this visitor has brought and done, beside the state; it lasts as long as the session."""

    name: str = field(
        default_factory=lambda: uuid4().hex
    )  # tells shared work who is waiting for it
    notices: list[str] = field(default_factory=list)  # sentences for the next page run
    files: dict[str, Any] = field(
        default_factory=dict
    )  # the runs from files, by name, oldest first
    # the tokens that were tried in place of others, each with the tokens before it
    tried: set[Hashable] = field(default_factory=set)
    # the visitor's file for the page "Heads over sentences": name and lines; None for the bundled
    # sample
    sentences: "tuple[str, tuple[Line, ...]] | None" = None
    gold: "list[GoldPair]" = field(default_factory=list)  # gold alignments from the visitor's file
    # what was done, by lesson and step (from 0): None if read, else the question's outcome
    lesson_notes: dict[str, dict[int, Any]] = field(default_factory=dict)
    question: Any = None  # what is asked of the Hub; None for nothing yet
    student: str = ""  # the name for the file of progress
    # in this run of the page, what an open question offers, so that nothing says which it is; None
    # if the page may say everything
    silent: Sequence[str] | None = None
    roleless: bool = (
        False  # whether heads go without the names of their roles, for which a lesson will ask
    )


def visit() -> Visit:
    """What is kept of this visitor."""
    kept: Visit = st.session_state.setdefault("visit", Visit())
    return kept


def current() -> State:
    """The state of this visitor."""
    state: State = st.session_state.setdefault("state", State())
    return state


def values(declared: type[T]) -> T:
    """What a page alone reads of the address, as a class of `page_values` declares it."""
    return current().values(declared)


def _address() -> dict[str, list[str]]:
    """The parameters of the address that the browser had when it asked for this run."""
    return {name: st.query_params.get_all(name) for name in st.query_params}


FORMER = "en-de"
"""Opened first until addresses named their model: it is meant by an address with a text and no
model."""
CARRIED = (
    *("text", "sentence", "language", "model", "step", "source", "encoder", "decoder", "cross"),
    *("two", "a", "b", "length", "present"),
)
"""Values that a lesson keeps from step to step; all others are as a step's view gives them."""
OF_A_MODEL = ("step", "source", "encoder", "decoder", "cross")
"""Those of them that say nothing of another model."""


@dataclass(frozen=True)
class Stayed:
    """The address is the one that this session wrote last."""


@dataclass(frozen=True)
class ByMenu:
    """A link of the menu was followed, which keeps this session's state."""

    named: Moves  # what the link says of the state


@dataclass(frozen=True)
class ByLesson:
    """A link of a lesson was followed, which keeps the visitor's sentence and cursor."""

    named: Moves  # what the step says of the state


@dataclass(frozen=True)
class ByAddress:
    """An address was opened: a link from elsewhere, Back, a bookmark."""

    state: State  # as the address has it
    unreadable: Sequence[str]  # the names of the parameters that could not be read as they are
    by_menu: bool  # whether it is a link of the menu, in a session that has no state yet


Arrival = Stayed | ByMenu | ByLesson | ByAddress
"""How a visitor has come to the page that begins."""


def adopt() -> None:
    """Reads the address unless this session wrote it last; it differs after a link, the menu, or
    Back.

    A link of the menu (`KEEP`) keeps this session's state but for what the link names; a session
    that has none reads the address. A link of a lesson keeps less, see `_at_step`.
    """
    params = _address()
    unwritten = st.session_state.pop("unwritten", False)
    match _arrival(params):
        case Stayed():
            if unwritten:
                _write(current())
        case ByLesson(named):
            _write(_at_step(named))
        case ByMenu(named):
            _write(changed(elsewhere(current()), **named))
        case ByAddress(state, unreadable, by_menu):
            _open_address(params, _completed(state, params))
            if by_menu:
                _write(current())
            _notice_unreadable(unreadable)


def _arrival(
    params: Mapping[str, list[str]],  # of the address
) -> Arrival:
    if params == st.session_state.get("written"):
        return Stayed()
    state, unreadable = parse(params)
    by_menu = all(params.get(name) == [value] for name, value in KEEP.items())
    if not by_menu or "state" not in st.session_state:
        return ByAddress(state, unreadable, by_menu)
    named = {name: state.value(name) for name in KEYS if name in params}
    return ByLesson(named) if "lesson" in named else ByMenu(named)


def _completed(state: State, params: Mapping[str, list[str]]) -> State:
    """What an address says, with what its links leave out: the first model of former addresses,
    and texts that were too long for it."""
    if state.text is not None and state.model is None:
        state = replace(state, model=FORMER)
    before = current()
    if carried(before) or "text" in params:
        return state
    texts = {name: before.value(name) for name, key in KEYS.items() if key.long}
    return changed(state, **texts, sentence=state.sentence)


def _open_address(params: Mapping[str, list[str]], state: State) -> None:
    """Keeps the state of an address that stays as the visitor wrote it."""
    st.session_state["state"] = state
    st.session_state["written"] = params


def _notice_unreadable(names: Sequence[str]) -> None:
    if names:
        notice(
            "These parts of the address could not be read, so the nearest valid values are used: "
            f"{', '.join(names)}."
        )


def _at_step(named: Moves) -> State:
    """The state with which a step of a lesson opens: what it names, and the visitor's sentence and
    cursor."""
    before = current()
    steady = {name: before.value(name) for name in CARRIED}
    same_text = named.get("text", steady["text"]) == steady["text"]
    same_changes = named.get("changes", ()) == before.changes
    if named.get("model", steady["model"]) != steady["model"]:
        steady |= dict.fromkeys(OF_A_MODEL)
    elif not (same_text and same_changes):
        steady |= {"step": None, "source": None, "two": None}  # the cursor stood in another run
    if not same_text:
        steady["sentence"] = None
    return changed(State(), **{**steady, **named})


def change(**values: object) -> None:
    """Changes the state and writes the address once, as one entry in the browser's history."""
    _write(changed(current(), **values))


def keep() -> None:
    """Callback of a button that changes nothing in the state: what is shown stays.

    A click may overtake the address of the change before it, so that the browser sends the older
    address with it. Without a callback, `adopt` would take that one for a link, and the change
    would be lost.
    """
    written = st.session_state.get("written")
    if written not in (None, _address()):
        st.query_params.from_dict(written)


def rerun(
    **values: object,  # changes of the state
) -> None:
    """Runs the page again from its first line, unless the visitor has asked for something else
    meanwhile.

    `st.rerun` would replace a request that already waits, such as a click in the menu, and that
    click would be lost. Every access to the session lets a waiting request run first, hence the
    call of `current`. A click between this run and the next one would be lost too. So the new
    address, which tells whoever waits for it that they may click, is written only by the next run.
    """
    if values:
        keep()
        st.session_state["state"] = changed(current(), **values)
        st.session_state["unwritten"] = True
    current()
    st.rerun()


def _write(state: State) -> State:
    st.session_state["state"] = state
    params = as_params(state)
    st.session_state["written"] = {name: [value] for name, value in params.items()}
    st.query_params.from_dict(params)
    return state


def resolve(**values: object) -> State:
    """Fills in values that the app chose, without a new entry in the browser's history."""
    state = changed(current(), **values)
    st.session_state["state"] = state
    return state


def notice(text: str) -> None:
    """Keeps a sentence for the next page run."""
    visit().notices.append(text)


def browser() -> str:
    """A name for the visitor's browser, the same after a reload.

    Without cookies, that of the session.
    """
    return cookie() or visit().name


def cookie() -> str:
    """A name for the visitor's browser by its cookie; empty without one.

    Streamlit gives every browser a random token against forged requests, in a cookie:
    `2|mask|masked|time`. It masks the token anew each time.
    """
    parts = str(st.context.cookies.get("_streamlit_xsrf")).strip('"').split("|")
    try:
        mask = bytes.fromhex(parts[1])
        masked = bytes.fromhex(parts[2])
        token = bytes(byte ^ mask[i % len(mask)] for i, byte in enumerate(masked))
    except (IndexError, ValueError, ZeroDivisionError):
        token = b""
    return hashlib.sha256(token).hexdigest() if token else ""


def keep_sentences(name: str, lines: "tuple[Line, ...]") -> None:
    """Keeps the visitor's file of sentences for this visit.

    No lines bring back the bundled sample.
    """
    visit().sentences = (name, lines) if lines else None


def control(
    name: str,  # the widget
    value: V,  # the value that the widget should show
    take: Take[V] = None,  # what becomes of the value that the visitor chose
    texts: Iterable[str] = (),  # the texts of its options, if they depend on a sentence or a model
) -> dict[str, Any]:
    """Key and callback of a widget; the key is new whenever something other than it changed the
    value.

    It is new, too, if the texts of the options have changed: a browser knows the chosen option by
    its text, and would report the old text as the visitor's choice.
    """
    versions = st.session_state.setdefault("shown", {})
    now = value, tuple(texts)
    version, before = versions.get(name, (0, now))
    if before != now:
        version += 1
    versions[name] = version, now
    key = f"{name}.{version}"
    if not callable(take):
        take = partial(_change_field, take or name)
    return {"key": key, "on_change": on_control, "args": (name, key, take)}


def _change_field(name: str, value: object) -> None:
    """Takes the value of a widget for a field of the state."""
    change(**{name: value})


def on_control(
    name: str,  # the widget
    key: str,  # the key that `control` gave it
    apply: Callable[[V], object],  # gets the value
) -> None:
    """Callback of a widget: passes the value on, unless the event comes from an outdated
    version."""
    version, (_, texts) = st.session_state.setdefault("shown", {}).get(name, (0, (None, ())))
    if key != f"{name}.{version}" or key not in st.session_state:
        return
    value = st.session_state[key]
    st.session_state["shown"][name] = version, (value, texts)
    apply(value)


def on_pick(
    key: str,  # session key of the chart or table
    apply: Callable[
        [Any], object
    ],  # gets the `customdata` of the point, or the number of the row (from 0)
) -> None:
    """Callback of a clickable chart or table: passes on what was picked.

    An empty pick is ignored.
    """
    picked = st.session_state.get(key, {}).get("selection", {})
    points = picked.get("points") or []
    rows = picked.get("rows") or []
    if points:
        apply(points[0].get("customdata"))
    elif rows:
        apply(rows[0])


LINKED = "linked."
"""How the session keys of linked views begin."""

# --- the cursor ----------------------------------------------------------------------------------


def cursor() -> Cursor:
    """The visitor's cursor, with the number of the last event accepted from the browser."""
    return replace(cursor_of(current()), ack=st.session_state.get("ack", 0))


def sent(key: str) -> Mapping[str, Any]:
    """What a component has sent with this run of its part."""
    values: Mapping[str, Any] = st.session_state.get(key) or {}
    return values


def on_linked_view(
    view: str,  # name of the view
    limits: CursorRange,  # the translation on the screen
    sizes: Mapping[str, Head],  # number of layers and heads by kind
    # the state's values for continuing with a token (by its id) at a step (from 0)
    go_on: Callable[[int, int], Moves],
    # the state's values after a head (kind, layer and head) was switched off, or on again
    switch: Callable[[str, Head], Moves],
) -> bool:
    """Callback of a linked view: moves the cursor as the event says, or takes the head or token
    chosen there.

    Returns:
        Whether the model has to run again, for another token or without a head.
    """
    event = st.session_state.get(f"{LINKED}{view}", {}).get("at")
    before = cursor()
    after = reduce(before, event, limits)
    st.session_state["ack"] = after.ack
    if after.ack == before.ack or event["trace"] != limits.trace:
        return False
    candidate = picked_candidate(event, limits)
    chosen = picked_head(event, limits, sizes) | presented(event)
    moved = {"source": after.source, **asdict(after.chosen), **chosen}
    if limits.steps:
        moved["step"] = after.step
    if candidate is not None:
        moved |= go_on(*candidate)
    for kind, head in (switched := picked_head(event, limits, sizes, "off")).items():
        moved |= switch(kind, head)
    change(**moved)
    return candidate is not None or bool(switched)
