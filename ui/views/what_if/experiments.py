"""The section Ready experiments: ten questions, what a model answers, and one click to ask it again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from figures.base import labels
from figures.base.bars import percent
from lab.experiments.answers import Answer, Control, Moved, answers_of
from lab.experiments.questions import EXPERIMENTS, Experiment
from transformer import interventions as do
from transformer.storage.description import EXPERIMENTS_FILE
from ui.address import State, session
from ui.controls import inform, plain
from ui.server import catalogue, examples, measured
from ui.shell.changed import said

_COLUMNS = 2
_NOTHING = 0.005
"""Nats that two decimals do not show."""
Answers = dict[str, tuple[Answer, ...]]
"""What a model answered, by the names of the experiments."""


def show(model: str) -> None:
    known, found = answered(model)
    if not found:
        inform(
            "Nobody has asked this model yet. `python -m lab experiments --model …` writes "
            f"{EXPERIMENTS_FILE} into its directory."
        )
        return
    told = f"What **{plain(known)}** does if one thing is changed. Choose one to see it step by step."
    st.markdown(told if known == model else f"{told} That opens {plain(known)}.")
    shown = [each for each in EXPERIMENTS if each.name in found]
    for start in range(0, len(shown), _COLUMNS):
        for place, column in enumerate(st.columns(_COLUMNS, gap="small"), start=start):
            if place < len(shown):
                with column, st.container(border=True, height="stretch"):
                    _card(labels.count(place), shown[place], found[shown[place].name], known)


def suggest(model: str) -> None:
    """Draws the first experiment that changes a translation, for a visitor who has changed nothing yet."""
    known, found = answered(model)
    for number, each in enumerate(each for each in EXPERIMENTS if each.name in found):
        if any(answer.changed not in (None, answer.base) for answer in found[each.name]):
            with st.container(border=True):
                if known != model:
                    st.markdown(f"What **{plain(known)}** answered:")
                _card(labels.count(number), each, found[each.name], known)
            return


def answered(model: str) -> tuple[str, Answers]:
    """The model whose answers are shown, and these: those of the model, else those of the first one."""
    for name in dict.fromkeys((model, catalogue.DEFAULT)):
        if catalogue.exists(name) and (found := _answers(name)):
            return name, found
    return model, {}


def question(now: State) -> str | None:
    """The question of the experiment whose changes a state holds; None if it holds no experiment's."""
    _, found = answered(now.model or catalogue.DEFAULT)
    written = do.write_text(now.changes)
    for each in EXPERIMENTS:
        answers = [(answer.changes, answer.target) for answer in found.get(each.name, ())]
        if examples.text_on(now.model, now.text) == each.text and (written, now.target) in answers:
            return each.question
    return None


def _answers(model: str) -> Answers:
    with suppress(KeyError, OSError, ValueError):
        return measured.beside(model, answers_of)
    return {}


def _card(number: int, experiment: Experiment, found: Sequence[Answer], model: str) -> None:
    st.markdown(f"**{number}. {experiment.question}**")
    st.markdown(f":gray[{plain(experiment.text)} → {plain(found[0].base)}]")
    for at, answer in enumerate(found):
        named = f"*{answer.variant}*: " if len(found) > 1 else ""
        st.markdown(f"{named}{finding(answer)}")
        st.button(
            f"Try it: {_said(answer)}",
            type="tertiary",
            icon=":material/science:",
            on_click=_take,
            args=(experiment, answer, model),
            key=f"experiment.{experiment.name}.{at}",
        )
    st.caption(f"What this does not prove: {experiment.not_proved}")


def _said(answer: Answer) -> str:
    """The changes in words, as Markdown; of several, the first."""
    first, *more = do.read_text(answer.changes)
    others = f", and {len(more)} more changes" if more else ""
    return said(first) + others


def _take(experiment: Experiment, answer: Answer, model: str) -> None:
    """Opens the changes of an experiment."""
    step = None if answer.most is None else answer.most.step
    fresh = {**session.FRESH, "changes": do.read_text(answer.changes), "step": step}
    session.change(
        **fresh, text=experiment.text, target=answer.target, model=model, view=None, decode="greedy"
    )


def finding(answer: Answer) -> str:
    """What was found, in numbers of the file, as Markdown."""
    return " ".join(filter(None, (_outcome(answer), _cost(answer), _elsewhere(answer.control))))


def _outcome(answer: Answer) -> str:
    if answer.changed is None:
        return ""
    if answer.changed == answer.base:
        return "The translation stays the same."
    return f"It becomes **{plain(answer.changed) or '(nothing)'}**"


def _cost(answer: Answer) -> str:
    if answer.delta is None or answer.most is None:
        return ""
    assert answer.moved is not None
    if answer.moved < _NOTHING:
        return "The translation above is as probable as before."
    size = f"Σ|Δ| of its tokens: {answer.moved:.2f} nats"
    if abs(answer.delta) < answer.moved / 2:
        gained, lost = (answer.moved + answer.delta) / 2, (answer.moved - answer.delta) / 2
        return (
            f"Some tokens of the translation above gain **{gained:.2f} nats** together, others lose "
            f"**{lost:.2f}** ({size}){_most(answer.most)}."
        )
    way = "less" if answer.delta < 0 else "more"
    most = _most(answer.most) if answer.delta < 0 else ""
    return f"The translation above is **{abs(answer.delta):.2f} nats** {way} probable ({size}){most}."


def _most(moved: Moved) -> str:
    token = plain(labels.piece(moved.token))
    return f", most of all “{token}”: {percent(moved.before)} before, {percent(moved.after)} now"


def _elsewhere(control: Control | None) -> str:
    if control is None:
        return ""
    low, high = (labels.number(end, "+.2f") for end in (control.lowest, control.highest))
    many = {0: "none of them moves", 1: "1 of them moves"}.get(control.as_large, f"{control.as_large} move")
    return (
        f"The same change at {control.heads} other heads of the layer moves it by {low} to {high} nats; "
        f"{many} it as far."
    )
