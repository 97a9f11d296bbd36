"""Questions to start from, and one click to put the model to one of them."""

import re
from contextlib import suppress
from functools import partial

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import plain
from explorer.app.server import examples, models
from explorer.app.server.source import Source
from explorer.app.server.stores import remembered
from explorer.app.shell.changed import said
from explorer.figures.base import labels
from explorer.lenses.what_if.experiments import CONTINUED, EXPERIMENTS, Experiment, Variants
from transformer import interventions as do
from transformer.interventions import Intervention

Put = tuple[Variants, str | None]
"""The changes that ask a model, and the translation that is given with them."""


def show(source: Source) -> None:
    """The questions that a model can be asked, each with a button for every way to put it."""
    ready = [
        (experiment, put)
        for experiment in (*EXPERIMENTS, *CONTINUED)
        if (put := _put(source, experiment)) is not None
    ]
    if not ready:
        return
    st.markdown("##### Or put a question to the model")
    with st.container(border=True, gap="small"):
        for experiment, (variants, target) in ready:
            with st.container(
                horizontal=True, vertical_alignment="center", key=f"experiment-{experiment.name}"
            ):
                st.markdown(
                    f"**{experiment.question}**  \n:gray[{plain(experiment.text)}]", width="stretch"
                )
                for variant, changes in variants.items():
                    fresh = session.FRESH | {
                        "changes": changes,
                        "text": experiment.text,
                        "target": target,
                    }
                    # a link to the page on which it stands would leave the browser's address as it
                    # is
                    st.button(
                        variant if len(variants) > 1 else "ask",
                        key=f"experiment.{experiment.name}.{variant}",
                        icon=":material/science:",
                        help=_said(source, experiment.text, changes),
                        type="tertiary",
                        on_click=partial(
                            session.change, **fresh, model=source.name, decode="greedy"
                        ),
                    )


def held_experiment(now: State) -> Experiment | None:
    """The experiment whose changes a state holds; None if it holds no experiment's."""
    source = models.known(now.model)
    text = examples.passage(source, now).sentence
    written = do.write_text(now.changes)
    for experiment in (*EXPERIMENTS, *CONTINUED):
        if experiment.text == text and (put := _put(source, experiment)) is not None:
            variants, target = put
            if target == now.target and written in map(do.write_text, variants.values()):
                return experiment
    return None


def _put(source: Source | None, experiment: Experiment) -> Put | None:
    """An experiment with the places of a model; None if the model cannot be asked."""
    with suppress(KeyError, OSError, ValueError):
        if source is None or tuple(source.sizes) != experiment.kinds:
            return None
        measured = source.heads or "cross" not in experiment.kinds
        if measured and not source.load().cut(experiment.text).notes():
            return _placed(source, experiment.name, experiment=experiment)
    return None


@remembered(64)
def _placed(source: Source, _name: str, *, experiment: Experiment) -> Put:
    return experiment.put(source.load(), source.heads)


def _said(source: Source, text: str, changes: tuple[Intervention, ...]) -> str:
    """The first of the changes in words, as Markdown; a source token is named by its piece."""
    translator = source.load()
    pieces = translator.pieces(translator.ids(text), "source")

    def named(token: re.Match[str]) -> str:
        return f"“{plain(labels.piece(pieces[int(token[1]) - 1]))}” ({token[0]})"

    words = re.sub(r"source token (\d+)", named, said(changes[0]))
    if len(changes) > 1:
        words += f", and {len(changes) - 1} more changes"
    return words
