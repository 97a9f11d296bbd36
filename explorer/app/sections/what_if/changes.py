"""The changes of a run: the list, in which each can be switched off and taken out, and what adds
another."""

from functools import partial

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.change_list import Listed
from explorer.app.address.kinds import USUAL_WRITTEN, Moves
from explorer.app.address.state import changed as changed_state
from explorer.app.controls import part, plain
from explorer.app.sections.what_if.forms import GROUPS, Sort, one, unchanged
from explorer.app.server import runs
from explorer.app.server.run_key import RunKey
from explorer.app.server.view import View
from explorer.app.shell import changed
from explorer.figures.base import labels
from transformer import interventions as do
from transformer.config import AttentionKind
from transformer.interventions import Intervention, Mask
from transformer.interventions.words import LATER

_MOST = 64  # most words that can be clicked
_FORCED = (
    "While decoding, later tokens do not exist. So the causal mask can be lifted only over a "
    "finished output: the page takes the one without changes and keeps to it."
)


def tell(now: State, opened: View | None, _holds: changed.Holds) -> None:
    """Draws the list in place of the line that other pages draw; nothing if nothing is changed."""
    items = changed.all_of(now)
    output = now.target if opened is None else opened.run_key.target
    if output is not None:
        decodable = [Listed(change, on and not lifts(change)) for change, on in items]
        with st.container(
            horizontal=True, vertical_alignment="center", gap="small", key="changes-given"
        ):
            st.caption(f"The model reads a given output: {plain(output)}", width="content")
            st.button(
                "Let it write again",
                type="tertiary",
                help="Switches off the changes that hold only for a given output.",
                on_click=partial(
                    changed.take, decodable, target=None, write=now.write or USUAL_WRITTEN
                ),
                key="what-if.decode",
            )
    if not items:
        changed.show_changes(now, opened)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="changes"):
        for i, item in enumerate(items):
            _one(i, item, items, opened)
        if len(items) > 1:
            st.button(
                "Remove all", type="tertiary", on_click=changed.take, args=((),), key="changed.none"
            )


def _one(number: int, item: Listed, items: tuple[Listed, ...], opened: View | None) -> None:
    sentence = changed.said(item.change, None if opened is None else opened.translation)
    before = items[:number]
    after = items[number + 1 :]

    def switch(on: bool) -> None:
        more = Moves()
        if opened is not None and on:
            more = given_with(opened, item.change)
        changed.take((*before, Listed(item.change, on), *after), **more)

    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", width="content"):
        control = session.control(f"changed.on.{number}", item.on, switch, [sentence])
        st.checkbox(
            sentence if item.on else f":gray[{sentence} (off)]", item.on, width="content", **control
        )
        take = partial(changed.take, (*before, *after))
        icon, does = ":material/close:", "Remove this change"
        st.button("", f"changed.{number}", does, on_click=take, type="tertiary", icon=icon)


def lifts(change: Intervention) -> bool:
    """Whether a change lets the decoder see later tokens, which needs a given translation."""
    return isinstance(change, Mask) and change.kind is AttentionKind.DECODER and do.lifts(change)


def given_with(opened: View, change: Intervention) -> Moves:
    """The state's values with the output that a change needs: one that lifts the causal mask does.

    A text that is continued holds its own output.
    """
    if opened.run_key.target is not None or not lifts(change):
        return {}
    text = unchanged(opened).text
    return {"target": text} if "source" in opened.sides else {"text": text, "write": 0}


def add(opened: View) -> None:
    """Lets the visitor hide a token that was given, or choose another change and add it."""
    kind = opened.kinds[-1]
    tokens = opened.translation.labels(kind).keys
    if opened.translation.config.sites[AttentionKind(kind)].causal:
        # what a run writes may change with it
        tokens = tokens[: opened.translation.n_given + 1]
    words = labels.names(tokens)[:_MOST]
    hidden = [at for at in range(len(words)) if hide(kind, at) in session.current().changes]
    st.pills(
        f"Click a word to hide it from {_FROM[kind]}",
        range(len(words)),
        format_func=words.__getitem__,
        selection_mode="multi",
        default=hidden,
        width="stretch",
        **session.control("what-if.words", hidden, partial(_hide, kind), words),
    )
    if len(tokens) > _MOST:
        st.caption(f"The first {_MOST} tokens; a mask can hide any key.")
    _others(opened)


_FROM = {"cross": "cross-attention", "decoder": "later tokens", "encoder": "all tokens"}
"""Who no longer sees a token that is hidden, by the kind that reads it."""


def hide(kind: str, token: int) -> Intervention:
    """A token (from 0) that no head of a kind may read; under a causal mask, no later token."""
    match kind:
        case "cross":
            return do.hide(token)
        case "decoder":
            return do.mask(kind, forbid=[(LATER, token)])
        case _:
            return do.mask(kind, forbid=[(None, token)])


def _hide(kind: str, chosen: list[int]) -> None:
    """Makes the chosen tokens those that are hidden, among the tokens that can be clicked."""
    items = changed.all_of(session.current())
    acting = [listed_change.change for listed_change in items if listed_change.on]
    new = [change for at in chosen if (change := hide(kind, at)) not in acting]
    over = [hide(kind, at) for at in range(_MOST) if at not in chosen]
    stay = [
        listed_change
        for listed_change in items
        if listed_change.change not in new
        and not (listed_change.on and listed_change.change in over)
    ]
    changed.take([*stay, *(Listed(change, True) for change in new)])


@part()
def _others(opened: View) -> None:
    label = "or change something else"
    group = st.segmented_control(label, list(GROUPS), width="stretch", key="what-if.group")
    if group is None:
        return
    fitting = [sort for sort in GROUPS[group] if sort.side in opened.sides]
    sorts: dict[int, Sort] = dict(enumerate(fitting))
    change, problem = None, None
    more = Moves()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="what-if-add"):
        sort = sorts[one("Change", {i: sort.label for i, sort in sorts.items()}, 290)]
        try:
            if (change := sort.choose(opened)) is not None:
                more = given_with(opened, change)
                rest = (acting for acting in opened.run_key.changes if acting != change)
                problem = runs.refusal(
                    RunKey.of(
                        changed_state(session.current(), **more, changes=(*rest, change)),
                        opened.source,
                        more.get("text", opened.run_key.text),
                    )
                )
        except ValueError as error:
            problem = str(error)
        unready = change is None or problem is not None
        wanted = st.button("Add", type="primary", disabled=unready, key="what-if.add")
    if problem is not None:
        st.warning(plain(problem), icon=":material/error:")
    else:
        st.caption(_FORCED if more else sort.says)
    if wanted and change is not None:
        changed.add(change, **more)
        session.rerun()
