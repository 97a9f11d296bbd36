"""What the visitor sees, kept in the session and written to the address: the only file with session keys.

The session holds the state; `ui/address/parameters.py` says what it is made of. The address is read on the
first line of a page's full run (a link, the menu, Back), and written once per change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

import streamlit as st

from ui.address.parameters import TEXTS, State, as_params, carried, parse
from ui.linked_view.events import Cursor, Head, Limits, picked_head, reduce

FRESH: dict[str, Any] = {"step": None, "source": None, "pairs": frozenset(), "gold": None}
"""What belongs to one translation: another one starts without it."""


def current() -> State:
    """The state of this visitor."""
    state: State = st.session_state.setdefault("state", State())
    return state


def adopt() -> None:
    """Takes over the address where it is not the one this session wrote last: a link, the menu, Back."""
    params = {name: st.query_params.get_all(name) for name in st.query_params}
    if params == st.session_state.get("written"):
        return
    state, unreadable = parse(params)
    before = current()
    if not carried(before) and "text" not in params:
        state = replace(state, **{name: getattr(before, name) for name in TEXTS})
    st.session_state["state"] = state
    st.session_state["written"] = params
    if unreadable:
        notice(f"Not readable in the address, so left at the nearest valid value: {', '.join(unreadable)}.")


def change(**values: Any) -> State:
    """Changes the state and writes the address once: one entry of the browser's history."""
    state = replace(current(), **values)
    st.session_state["state"] = state
    params = as_params(state)
    st.session_state["written"] = {name: [value] for name, value in params.items()}
    st.query_params.from_dict(params)
    return state


def resolve(**values: Any) -> State:
    """Fills in what the app chose, without a new entry of the browser's history."""
    state = replace(current(), **values)
    st.session_state["state"] = state
    return state


def notice(text: str) -> None:
    """Keeps a sentence for the next page run."""
    st.session_state.setdefault("notices", []).append(text)


def take_notices() -> list[str]:
    """The sentences kept so far, each once."""
    return list(dict.fromkeys(st.session_state.pop("notices", [])))


def imported() -> dict[str, Any]:
    """What this visitor opened from files, by name, oldest first."""
    files: dict[str, Any] = st.session_state.setdefault("imported", {})
    return files


def visitor() -> str:
    """A name for this session, so that shared work knows who waits for it."""
    name: str = st.session_state.setdefault("visitor", uuid4().hex)
    return name


def own_sentences() -> tuple[str, tuple[Any, ...]] | None:
    """The visitor's own file for the page of heads over many sentences: its name and its lines."""
    kept: tuple[str, tuple[Any, ...]] | None = st.session_state.get("own_sentences")
    return kept


def keep_sentences(name: str, lines: tuple[Any, ...]) -> None:
    """Keeps such a file for this visit; without lines the bundled sample comes back."""
    st.session_state["own_sentences"] = (name, lines) if lines else None


def control(name: str, value: object) -> str:
    """The session key of a widget, new whenever something else than the widget changed its value.

    Args:
        name: the widget.
        value: what it should show.
    """
    shown = st.session_state.setdefault("shown", {})
    version, before = shown.get(name, (0, value))
    if before != value:
        version += 1
    shown[name] = (version, value)
    return f"{name}.{version}"


def on_control(name: str, key: str, apply: Callable[[Any], object]) -> None:
    """Callback of a widget: passes its value on, unless the event belongs to an outdated version.

    Args:
        name: the widget.
        key: the key that `control` gave it.
        apply: what to do with the value.
    """
    version, _ = st.session_state.setdefault("shown", {}).get(name, (0, None))
    if key != f"{name}.{version}" or key not in st.session_state:
        return
    value = st.session_state[key]
    st.session_state["shown"][name] = (version, value)
    apply(value)


def on_pick(key: str, apply: Callable[[Any], object]) -> None:
    """Callback of a chart or table that answers clicks: passes on what was picked; nothing picked is ignored.

    Args:
        key: its session key.
        apply: gets the `customdata` of the point, or the number of the row (from 0).
    """
    picked = st.session_state.get(key, {}).get("selection", {})
    points, rows = picked.get("points") or [], picked.get("rows") or []
    if points:
        apply(points[0].get("customdata"))
    elif rows:
        apply(rows[0])


def opened_gold() -> list[Any]:
    """The gold alignments that this visitor opened from a file."""
    pairs: list[Any] = st.session_state.setdefault("gold", [])
    return pairs


def keep_gold(pairs: list[Any]) -> None:
    """Keeps the gold alignments of a file for this visit."""
    st.session_state["gold"] = pairs


# --- the cursor ---------------------------------------------------------------------------------------------


def cursor() -> Cursor:
    """Where the visitor stands, with the number of the last event taken from the browser."""
    state = current()
    return Cursor(state.step or 0, state.source, st.session_state.get("ack", 0))


def view_key(view: str) -> str:
    """The session key of a linked view."""
    return f"linked.{view}"


def on_linked_view(view: str, limits: Limits, sizes: Mapping[str, Head]) -> None:
    """Callback of a linked view: moves the cursor as its event says, or opens the head it picked."""
    event = st.session_state.get(view_key(view), {}).get("at")
    before = cursor()
    after = reduce(before, event, limits)
    st.session_state["ack"] = after.ack
    if after.ack != before.ack:
        change(step=after.step, source=after.source, **picked_head(event, limits, sizes))
