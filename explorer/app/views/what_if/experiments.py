"""The section Ready experiments: ten questions, and one click to put the model to one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.parameters import link
from explorer.app.controls import inform, plain
from explorer.app.server import catalogue, examples, models
from explorer.app.server.source import Source, per_model
from explorer.app.shell.changed import said
from explorer.figures.base import labels
from explorer.lenses.what_if.experiments import EXPERIMENTS, Experiment, Variants
from transformer import interventions as do
from transformer.interventions import Intervention

_COLUMNS = 2
Put = tuple[Variants, str | None]
"""The changes that ask a model, and the translation that is given with them."""


def known(source: Source | None) -> bool:
    """Whether a model can be asked at least one of the questions."""
    return any(_put(source, each) is not None for each in EXPERIMENTS)


def show(source: Source) -> None:
    shown = [(each, found) for each in EXPERIMENTS if (found := _put(source, each)) is not None]
    if not shown:
        inform(
            "These experiments need English sentences and a model of whose heads heads.json tells: choose "
            f"{catalogue.DEFAULT} on the left."
        )
        return
    name = plain(models.handle(source.name).title)
    st.markdown(f"What does **{name}** do if one thing is changed? Choose one: the model answers.")
    for start in range(0, len(shown), _COLUMNS):
        row = enumerate(shown[start : start + _COLUMNS], start=start + 1)
        for (number, (each, found)), column in zip(row, st.columns(_COLUMNS, gap="small"), strict=False):
            with column, st.container(border=True, height="stretch", key=f"experiment-{each.name}"):
                _card(number, each, found, source)


def question(now: State) -> str | None:
    """The question of the experiment whose changes a state holds; None if it holds no experiment's."""
    source = models.known(now.model)
    text, written = examples.sentence_of(source, now), do.write_text(now.changes)
    for each in EXPERIMENTS:
        if each.text == text and (found := _put(source, each)) is not None:
            variants, target = found
            if target == now.target and written in map(do.write_text, variants.values()):
                return each.question
    return None


def _put(source: Source | None, experiment: Experiment) -> Put | None:
    """An experiment with the places of a model; None if the model cannot be asked."""
    if source is None:
        return None
    with suppress(KeyError, OSError, ValueError):
        heads, translator = source.heads, source.translator()
        if heads and not translator.cut(experiment.text).notes():
            return _placed(source, experiment.name, experiment=experiment)
    return None


@per_model(64)
def _placed(source: Source, _name: str, *, experiment: Experiment) -> Put:
    return experiment.put(source.translator(), source.heads)


def _card(number: int, experiment: Experiment, found: Put, source: Source) -> None:
    variants, target = found
    translator = source.translator()
    pieces = translator.pieces(translator.ids(experiment.text), "source")
    st.markdown(f"**{number}. {experiment.question}**")
    st.markdown(f":gray[{plain(experiment.text)}]")
    for variant, changes in variants.items():
        named = f"*{variant}*: " if len(variants) > 1 else ""
        fresh = {**session.FRESH, "changes": changes, "text": experiment.text, "target": target}
        st.page_link(
            "pages/what_if.py",
            label=f"{named}{_said(changes, pieces)}",
            icon=":material/science:",
            query_params=link(session.current(), **fresh, model=source.name, decode="greedy"),
        )
    st.caption(f"What this does not prove: {experiment.not_proved}")


def _said(changes: tuple[Intervention, ...], pieces: Sequence[str]) -> str:
    """The changes in words, as Markdown; of several, the first. A source token is named by its piece."""

    def named(place: re.Match[str]) -> str:
        return f"“{plain(labels.piece(pieces[int(place[1]) - 1]))}” ({place[0]})"

    first, *more = changes
    told = re.sub(r"source token (\d+)", named, said(first))
    return told + (f", and {len(more)} more changes" if more else "")
