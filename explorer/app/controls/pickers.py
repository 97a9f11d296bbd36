"""Controls for more than one page."""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeVar

import streamlit as st

from explorer.app.address import session
from explorer.app.address.kinds import TEXT, Moves
from explorer.app.address.state import KEYS
from explorer.app.controls.options import heads, numbered
from explorer.app.controls.text import plain
from explorer.app.server import models
from explorer.app.server.source import Source
from explorer.app.server.view import View
from explorer.figures.base import labels
from explorer.figures.base.captions import kind_name
from transformer.config import AttentionKind, Head

V = TypeVar("V")
N = TypeVar("N", int, float)


def choose(
    name: str,  # the widget
    label: str,  # what is chosen
    names: Mapping[V, str],  # the options and how they are called
    value: V,  # the option that is chosen
    take: session.Take[V] = None,  # what becomes of the option that the visitor chooses
    *,
    labelled: bool = False,  # whether the label is seen, not only read aloud
    texts: bool = False,  # whether the names depend on a sentence or a model
    width: int | Literal["stretch"] = "stretch",  # in px
    help: str | None = None,  # what it does, in Markdown
    disabled: bool = False,  # whether it is settled otherwise
) -> None:
    """Lets the visitor choose one of many."""
    st.selectbox(
        label,
        list(names),
        index=list(names).index(value),
        format_func=names.__getitem__,
        label_visibility="visible" if labelled else "collapsed",
        width=width,
        help=help,
        disabled=disabled,
        **session.control(name, value, take, names.values() if texts else ()),
    )


def switch(
    name: str,  # as in `choose`
    label: str,  # as in `choose`
    names: Mapping[V, str],  # as in `choose`
    value: V,  # as in `choose`
    take: session.Take[V] = None,  # as in `choose`
    *,
    labelled: bool = False,  # as in `choose`
    texts: bool = False,  # as in `choose`
    width: int | Literal["stretch", "content"] = "content",  # in px
    help: str | None = None,  # as in `choose`
) -> None:
    """Lets the visitor choose one of few, all of which are seen."""
    st.segmented_control(
        label,
        list(names),
        default=value,
        format_func=names.__getitem__,
        required=True,
        label_visibility="visible" if labelled else "collapsed",
        width=width,
        help=help,
        **session.control(name, value, take, names.values() if texts else ()),
    )


def slide(
    name: str,  # as in `choose`
    label: str,  # as in `choose`
    value: N,  # the value that is chosen
    take: session.Take[N] = None,  # as in `choose`
    *,
    # the smallest and the largest value; None: those of the address
    ends: tuple[N, N] | None = None,
    width: int | Literal["stretch"] = "stretch",  # in px
    help: str | None = None,  # what it does, in Markdown
) -> None:
    """Lets the visitor choose a number."""
    key = KEYS.get(name)
    kind = TEXT if key is None else key.kind
    low, high = ends or kind.ends or (0, 1)
    st.slider(
        label,
        low,
        high,
        value,
        kind.step,
        width=width,
        help=help,
        **session.control(name, value, take),
    )


def examples(
    texts: Mapping[str, str],  # by their topics
    take: Callable[[str], None],  # gets the one that the visitor chooses
) -> None:
    """Offers texts to start from."""
    st.caption("Try:", width="content")
    for i, (topic, text) in enumerate(texts.items()):
        hint = plain(text) or None
        st.button(
            topic, key=f"example.{i}", type="tertiary", on_click=take, args=(text,), help=hint
        )


def roles_of(source: Source, kind: str) -> list[list[str]]:
    """The roles of the heads of a kind, by layer and head.

    None while a lesson asks for one, or will.
    """
    visit = session.visit()
    return source.roles.get(kind, []) if visit.silent is None and not visit.roleless else []


def head_picker(
    kind: str,  # encoder, decoder or cross
    chosen: Head | None,  # the one that is shown, from 0; None for `other`
    source: Source,  # the model, or the open file
    # gets what is chosen; without it nothing but this head changes in the state
    take: Callable[[Head | None], object] | None = None,
    width: int | Literal["stretch"] = 240,  # in px
    other: str = "",  # the name of an entry before the heads that is none of them
) -> None:
    """Lets the visitor choose layer and head of one kind.

    For use inside the fragment that draws the head.
    """
    take = take or (lambda head: session.change(**{kind: head}))
    roles = roles_of(source, kind)
    names = dict[Head | None, str]()
    if other:
        names[None] = other
    for head, name in heads(source.sizes[kind], source.default_heads[kind], roles).items():
        names[head] = name
    title = source.config.sites[AttentionKind(kind)].title
    label = f"Head of {kind_name(kind, title).lower()}"

    def pick(head: Head | None) -> None:
        take(None if head is None else (head[0], head[1]))

    choose(f"head.{kind}", label, names, chosen, pick, texts=True, width=width)


def kind_picker(
    kind: str,  # the kind on the screen
    kinds: Iterable[str] = models.KINDS,  # those that the page offers
    # whether it stands in a part that keeps its kind, so that the page has to run again
    part: bool = False,
    **also: object,  # values of the address that change with it
) -> None:
    """Lets the visitor choose among the kinds of attention."""
    names = {
        offered_kind: {"decoder": "masked decoder"}.get(offered_kind, offered_kind)
        for offered_kind in kinds
    }

    def take(chosen: str) -> None:
        session.change(kind=chosen, **also)
        if part:
            session.rerun()

    switch("kind", "Kind of attention", names, kind, take, texts=True, width="content")


def row_picker(
    opened: View,  # the sentence
    kind: str,  # encoder, decoder or cross
    row: int,  # row of the cursor, from 0
    width: int | Literal["stretch"] = 230,
) -> None:
    """Moves the cursor to another row of a map that is not linked."""
    run = opened.translation
    tokens, verb = {
        "encoder": (run.source_tokens, "token"),
        "decoder": (run.decoder_input_tokens, "reads"),
        "cross": (run.target_tokens, "predicts"),
    }[kind]
    names = numbered(f"{verb} {piece}" for piece in labels.pieces(tokens))
    moved = "source" if kind == "encoder" else "step"

    def take(i: int) -> None:
        session.change(**{moved: i})

    choose(f"row.{kind}", "Row of the cursor", names, row, take, texts=True, width=width)


def window(
    now: int | None,  # the first place that the address asks for, from 0
    most: int,  # how many places the window shows
    count: int,  # how many there are
    noun: str,  # what they are, in the plural
) -> int:
    """A slider over the places at which a window can begin; nothing is drawn if everything fits.

    Returns:
        The first place that the window shows, from 0.
    """
    last = count - most
    if last <= 0:
        return 0
    first = min(now or 0, last)
    place("first", f"First of the {most} {noun} shown, of {count}", first, last + 1)
    return first


def place(name: str, label: str, now: int, count: int) -> None:
    """Lets the visitor choose one of several places (from 0), which people count from 1."""

    def take(chosen: int) -> None:
        session.change(**{name: int(chosen) - 1 or None})

    st.slider(label, 1, count, now + 1, **session.control(name, now, take))


def variants(
    choices: dict[str, str],  # labels by the value of `view` in the address
    now: str | None,  # that value
    sentences: dict[str, str] | None = None,  # what each variant shows
    # other values of the state with which a variant begins, by its name
    fresh: Callable[[str], Moves] = lambda chosen: {},
    usual: str
    | None = None,  # the variant that an address without `view` opens; None for the first
) -> None:
    """A switch between the variants of a page, with one sentence about each."""
    usual = usual or next(iter(choices))
    value = now if now in choices else usual

    def take(chosen: str) -> None:
        session.change(**{**fresh(chosen), "view": None if chosen == usual else chosen})

    with st.container(horizontal=True, vertical_alignment="center"):
        switch("view", "View", choices, value, take, width="content")
        if sentences and sentences[value]:
            st.caption(sentences[value], width="stretch")
