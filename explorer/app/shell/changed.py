"""The quiet line that says what is changed in the run of the model, and takes it back."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.change_list import Listed, listed, parted
from explorer.app.address.kinds import Moves
from explorer.app.controls import plain
from explorer.app.server import runs
from explorer.app.server.view import View
from explorer.figures.base import labels
from explorer.figures.base.tasks import WORDS
from explorer.lenses.what_if.two_runs import predicted, shared_predictions
from explorer.linked.living.beside import in_words
from transformer.config import Head
from transformer.interventions import Intervention, ablate
from transformer.run import Translation

_MOST = 8
"""Most changes with a button of their own."""
_LONGEST = 90
"""Most letters of a translation on a button."""
Holds = Callable[[Intervention], bool]
"""Whether a change holds on a page."""
Tell = Callable[[State, View | None, Holds], None]
"""Draws what a page says about changes; gets what `tell` gets."""


def every(_change: Intervention) -> bool:
    """For a page that can show any changed run."""
    return True


def none(_change: Intervention) -> bool:
    """For a page that shows the model as it is."""
    return False


def of_tokens(change: Intervention) -> bool:
    """For a page that shows the model's own arithmetic: what the model reads and writes may be
    changed."""
    return change.part == "tokens"


def all_of(now: State) -> tuple[Listed, ...]:
    """The list of changes of a state, with those that are switched off."""
    return listed(now.changes, now.off)


def take(
    items: Iterable[Listed],  # the list
    **more: object,  # other values of the state
) -> None:
    """Takes another list of changes; the cursor stays."""
    session.change(**{**_taken(items), **more})


def _taken(items: Iterable[Listed]) -> Moves:
    """The state's values with another list of changes."""
    now = session.current()
    return {**session.RUN, "step": now.step, "source": now.source, **parted(items)}


def add(change: Intervention, **more: object) -> None:
    """Adds a change at the end of the list, or switches it on if it is there; further as `take`."""
    items = all_of(session.current())
    if change in [listed_change.change for listed_change in items]:
        take([Listed(known, on or known == change) for known, on in items], **more)
    else:
        take([*items, Listed(change, True)], **more)


def switched(kind: str, head: Head) -> Moves:
    """The state's values after a head was switched off, or on again if it was off."""
    change = ablate(kind, *head)
    items = all_of(session.current())
    rest = [listed_change for listed_change in items if listed_change.change != change]
    if Listed(change, True) not in items:
        rest.append(Listed(change, True))
    return _taken(rest)


def remove(change: Intervention) -> None:
    """Takes a change out of the list."""
    take(
        listed_change
        for listed_change in all_of(session.current())
        if listed_change.change != change
    )


def show_changes(
    now: State,  # the state
    opened: View | None,  # the sentence; None if the changes were refused
    holds: Holds = every,  # which changes hold on this page
) -> None:
    """Draws the line; draws nothing if nothing is changed."""
    if not now.changes:
        if opened is not None and (changes := opened.translation.interventions):
            st.caption(f":material/edit: {_count(changes)}: {'; '.join(map(said, changes))}.")
        return
    left_out = [change for change in now.changes if not holds(change)]
    run = None if opened is None else opened.translation
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="changed"):
        note = _left_out(left_out, now.changes)
        st.caption(f":material/edit: {_count(now.changes)}{note}:", width="content")
        for i, change in enumerate(now.changes[:_MOST]):
            st.button(
                said(change, run),
                key=f"changed.{i}",
                type="tertiary",
                icon=":material/close:",
                help="Remove this change",
                on_click=remove,
                args=(change,),
            )
        if opened is not None and not left_out:
            _back(now, opened)
        if opened is None or len(now.changes) > 1:
            st.button(
                "Remove all", type="tertiary", on_click=keep_first, args=(0,), key="changed.none"
            )


def _left_out(left_out: Sequence[Intervention], changes: Sequence[Intervention]) -> str:
    """Which of the changes do not hold on this page, in brackets; empty if all do."""
    if not left_out:
        return ""
    which = "all"
    if len(left_out) != len(changes):
        which = f"“{'”, “'.join(map(said, left_out))}”"
    return f" (this page shows the model's own arithmetic; left out: {which})"


def _count(changes: Sequence[Intervention]) -> str:
    """How many changes act."""
    verb = "is" if len(changes) == 1 else "are"
    return f"{labels.counted(len(changes), 'change')} {verb} active"


def said(
    change: Intervention,  # the change
    run: Translation
    | None = None,  # the changed run, if there is one; it knows the words behind positions
) -> str:
    """A change as people read it, as Markdown."""
    return plain(in_words(change, run))


def keep_first(count: int) -> None:
    """Takes out all changes that act, but the first; those that are switched off stay."""
    now = session.current()
    take(listed(now.changes[:count], now.off))


def written_by(run: Translation) -> str:
    """What a run's output is: a translation, or a text."""
    return WORDS[run.config.task].output


def step_name(run: Translation, number: int) -> str:
    """What a prediction of a run is called, by its number from 0: a step of its output, or a
    mask."""
    return f"{WORDS[run.config.task].place} {labels.count(number)}"


def verdict(before: Translation, after: Translation) -> str:
    """What the last change did, in Markdown: the probability that moved most, or the first other
    token."""
    written = written_by(after)
    shared = shared_predictions(before, after)
    if not shared:
        return "No word is predicted here; the maps show what changed."
    first = predicted(before)
    second = predicted(after)
    pairs = [(first[i], second[j]) for i, j in shared]
    for (_, number), (one, later) in zip(shared, pairs, strict=True):
        if one.token_id != later.token_id:
            told = (
                f"“{plain(labels.piece(one.token))}” became "
                f"“**{plain(labels.piece(later.token))}**”"
            )
            return f"The {written} is another one: at {step_name(after, number)}, {told}."
    if len(before.steps) != len(after.steps):
        return f"The {written} has another length."
    moves = [(math.exp(one.log_prob), math.exp(later.log_prob), one.token) for one, later in pairs]
    was, now, token = max(moves, key=lambda each: abs(each[1] - each[0]))
    digits = 1 if abs(was - now) < 0.05 else 0  # one that tells them apart, if one does
    old, new = (f"{100 * text:.{digits}f}" for text in (was, now))
    shares = f"stays at {old}" if old == new else f"{old} → {new}"
    of = f"the probability of “{plain(labels.piece(token))}”"
    return f"{written.capitalize()} unchanged; {of} {shares}{labels.PER_CENT}."


def _back(now: State, opened: View) -> None:
    """What the last change did, and a button with the translation before it.

    A click goes back to that.
    """
    fewer = now.changes[:-1]
    try:
        before = runs.translate(replace(opened.run_key, changes=fewer))
    except ValueError:  # what is left does not hold without the last change
        return
    st.caption(verdict(before, opened.translation), width="content")
    if before.text == opened.translation.text:
        return
    text = before.text if len(before.text) <= _LONGEST else before.text[: _LONGEST - 1] + "…"
    st.button(
        f":gray[{plain(text)}]",
        type="tertiary",
        icon=":material/undo:",
        help=f"The {written_by(before)} before the last change. Click to go back to it.",
        on_click=keep_first,
        args=(len(fewer),),
        key="changed.back",
    )
