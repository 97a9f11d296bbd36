"""One query of one head, step by step: the cursor, the controls, and the sections under them.

The linked view's fragment runs at every step. It feeds the slots of the sections, which a full run has drawn.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import hushed, inform, options, pickers, seen
from explorer.app.controls.slots import Content, feed
from explorer.app.maps.explorer import Scene, explorer, strips_only
from explorer.app.maps.looking import HeadSelection, Looks, looks_of
from explorer.app.server import models, per_run
from explorer.app.server.opened import Opened
from explorer.app.shell.changed import of_tokens, said
from explorer.app.shell.fitting import fitted_here
from explorer.app.shell.models.needs import has
from explorer.app.views.inside import build, formulas, frames, layer, vectors, weights, what_if
from explorer.app.views.inside.contents import (
    ALL,
    BUILD,
    CHANGED,
    FIRST,
    SECTIONS,
    WHAT_IF,
    contents,
    following,
    steps,
)
from explorer.app.views.inside.look import Look, SectionContents
from explorer.app.views.inside.notation import NAMES, notation
from explorer.lenses.inside.inside import InsideHead
from explorer.linked.view import window_around
from transformer.config import AttentionKind, Head
from transformer.interventions import Intervention

KINDS = {"encoder": "encoder", "decoder": "masked decoder", "cross": "cross-attention"}
USUAL = "cross"
_SEEING = (
    "You see one query of one head: everything that the head reads from the residual stream, and everything "
    "that happens until its result is added back. Purple is positive, amber is negative, clear is zero. "
    "Point at a cell to see its number. Every number is the model's own for this sentence, and the formula "
    "beside it gives the same number again."
)
_ANALOGY = (
    "An analogy: you search for a video. Your **query** is compared with every title (**key**). Instead of "
    "the best video you get a mixture of all of them (**values**), weighted by how well each title matches."
)


def controls(state: State) -> None:
    """Chooses the kind of attention."""
    now, source = _kind(state), models.known(state.model)
    with st.container(horizontal=True, vertical_alignment="center"):
        pickers.switch(
            "kind",
            "Kind of attention",
            {kind: name for kind, name in KINDS.items() if has(source, kind)},
            now,
            lambda each: session.change(kind=None if each == USUAL else each),
            width="content",
        )
        pickers.switch(
            "section",
            "Step",
            steps(),
            state.section or FIRST,
            lambda each: session.change(section=None if each == FIRST else each),
            width="content",
        )


def _kind(now: State) -> str:
    return now.kind if now.kind and has(models.known(now.model), now.kind) else USUAL


def holds(change: Intervention) -> bool:
    """Whether a change holds on this page: changed tokens, and heads, as long as another head is shown."""
    return of_tokens(change) or change.part in ("scores", "weights", "heads")


def _acts_on(change: Intervention, kind: str, head: Head) -> bool:
    """Whether a change acts inside a head; then the arithmetic of this page is not all that happens there."""
    return head[1] in change.heads_of(AttentionKind(kind), head[0], head[1] + 1)


def show(opened: Opened) -> None:
    """Draws the page for one sentence; nothing but a sentence for a head that is itself changed."""
    now = session.current()
    kind = _kind(now)
    head = getattr(now, kind)
    acting = [each for each in opened.translation.interventions if _acts_on(each, kind, head)]
    if not acting:
        if _chosen(now) == BUILD:
            build.show(opened, kind)
        else:
            _frames(opened, now, kind)
        return
    pickers.head_picker(kind, head, opened.source)
    st.info(
        f"This head is itself changed: {'; '.join(map(said, acting))}. So the arithmetic of this page is not "
        "all that happens in it. Choose another head, or remove the change.",
        icon=":material/edit:",
    )


def _frames(opened: Opened, now: State, kind: str) -> None:
    """The sections; the text under the cursor names the head, but no map shows it."""
    looking = looks_of(opened, now)[kind]
    look = _look(looking, now)
    with st.container(key="heads"):
        heads, letters, explanation = st.columns([1, 1, 2], gap="small", vertical_alignment="center")
    with heads:
        pickers.head_picker(look.kind, looking.head, looking.opened.source)
    with letters:
        pickers.choose("notation", "Notation", NAMES, now.notation)
    with explanation:
        seen(f"{_SEEING}\n\n{_ANALOGY}", formulas.overview(look))

    if kind != "cross":
        fitted_here("key", now.key, len(look.inside.view.key_tokens))

    def beside(now: State, looks: Looks) -> None:
        _follow(looks[kind], now)

    def parts() -> tuple[Look, dict[str, SectionContents]]:
        now = session.current()
        look = _look(looks_of(opened, now)[kind], now)
        return look, parts_of(look, now)

    above = _contents if _chosen(now) == ALL else None
    explorer(Scene(strips_only("inside", kind), opened, (kind,), above=above, beside=beside))
    for name in _sections(now):
        if name == CHANGED[0] or (name in CHANGED and _chosen(now) != ALL):
            what_if.controls(look, now.what_if)
        frames.draw(name, look, parts)
    after = None if _chosen(now) == ALL else following(_chosen(now))
    if after is not None:
        label, key = f"Next step: {SECTIONS[after].title.lower()}", "inside.next"
        st.button(label, key=key, icon=":material/arrow_forward:", on_click=_open, args=(after,))


def _open(name: str) -> None:
    session.change(section=name)


def _chosen(now: State) -> str:
    return now.section or FIRST


def _sections(now: State) -> tuple[str, ...]:
    return tuple(SECTIONS) if _chosen(now) == ALL else (_chosen(now),)


def _contents(_now: State, _looks: Looks) -> None:
    contents()


def _look(at: HeadSelection, now: State) -> Look:
    """The query at the cursor, and the key under inspection."""
    opened = at.opened
    inside = per_run.inside(opened, at.kind, at.head, at.cell[0])
    key = _key(at, inside, now.key)
    window = window_around(len(inside.view.key_tokens), key)
    return Look(at.opened, inside, at.as_recorded(), key, *window, notation(now.notation, at.kind))


def _key(at: HeadSelection, inside: InsideHead, asked: int | None) -> int:
    """The key under inspection: in cross-attention the source token at the cursor, else the chosen one.

    While a question is open, it is the first if none is chosen: the usual one is the one of most weight.
    """
    if session.silent() is not None:
        return (at.cursor.source if at.kind == "cross" else asked) or 0
    if at.kind == "cross":
        return at.cell[1]
    if asked is None:
        return int(np.argmax(inside.view.weights[0]))
    return min(asked, len(inside.view.key_tokens) - 1)


def parts_of(look: Look, now: State) -> dict[str, SectionContents]:
    """Contents of the sections on the screen, by name."""
    other = what_if.outcome(look, now.what_if)
    told = what_if.told(look, now.what_if, other)
    made: dict[str, Callable[[], SectionContents]] = {
        "input": lambda: vectors.read(look),
        "projections": lambda: vectors.projections(look),
        "path": lambda: vectors.path(look),
        "products": lambda: vectors.products(look),
        "weights": lambda: weights.scores(look, other),
        "sum": lambda: weights.weighted_sum(look, other),
        "matrix": lambda: layer.matrix_form(look),
        "heads": lambda: layer.all_heads(look),
        "stream": lambda: layer.stream(look),
        "block": lambda: layer.layer(look),
    }
    shown = {name: made[name]() for name in _sections(now)}
    return shown if told is None or not {*shown} & {*CHANGED} else {**shown, WHAT_IF: told}


def _follow(at: HeadSelection, now: State) -> None:
    """Draws the key, which follows the cursor, and fills the slots."""
    look = _look(at, now)
    _key_picker(look, now)
    moving: dict[str, Content] = {}
    fixed: dict[str, Content] = {}
    for name, part in parts_of(look, now).items():
        moving |= {f"{name}.{place}": text for place, text in part.texts.items()}
        for place, drawings in part.figures.items():
            kept = all(not drawing.step for drawing in drawings) and bool(drawings)
            (fixed if kept else moving)[f"{name}.{place}"] = [each.picture(look) for each in drawings]
    with st.container(key="inside-feeds"):
        feed("inside.moving", moving)
        feed("inside.fixed", fixed)


def _key_picker(look: Look, now: State) -> None:
    tokens, kind = look.view.key_tokens, look.kind
    names, field = options.keys(tokens), "source" if kind == "cross" else "key"
    if kind != "cross" and now.key is not None and now.key >= len(tokens):
        inform(f"This row has {len(tokens)} keys; key {len(tokens)} is shown.")
    with st.container(horizontal=True, vertical_alignment="center", key="inside-key"):
        pickers.choose(
            f"key.{kind}",
            "Key",
            names,
            look.key,
            lambda each: session.change(**{field: int(each)}),
            texts=True,
            width=260,
        )
        st.caption(hushed(f"weight {look.view.weights[0, look.key]:.2f}"), width="content")
