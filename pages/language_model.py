"""Page: a causal language model continues a text, and what it reads at every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app.address import State, session
from explorer.app.address.kinds import SAMPLE
from explorer.app.controls import inform, refusal, refusals
from explorer.app.controls.pickers import choose, control, examples
from explorer.app.sections.language_model import generation, lengths, surprisal
from explorer.app.server import catalogue, models, runs
from explorer.app.server.opened import Opened
from explorer.app.server.runs import Request
from explorer.app.server.source import Source
from explorer.app.shell import changed, frame, menu, sentence, waiting
from explorer.app.shell.fitting import fit_heads, fit_model, fit_position, noticed
from explorer.app.shell.sections import chosen, switch
from transformer.run import Translation
from transformer.text.typed import clean

PAGE = "language_model"
_MISSING = "There is no language model here: put the directory of one under `models/language/`."


@dataclass(frozen=True)
class TextSection:
    """A section whose text the model reads or continues."""

    show: Callable[[Opened, Translation], None]  # draws it for what was opened and its run
    examples: Mapping[str, str]  # texts to start from by their topics; the first one opens
    whole: bool  # whether the model reads a whole text and writes nothing
    first: Callable[[Translation], int]  # the step (from 0) at which a run opens
    # a sentence about the run, which stands behind the examples
    note: Callable[[Translation], str] | None = None

    def text(self, now: State) -> str:
        """The text that a state asks for."""
        return next(iter(self.examples.values())) if now.prompt is None else now.prompt

    def asked(self, now: State, source: Source, text: str) -> Request:
        """The run that a state asks for: the text is read as a whole, or continued."""
        if self.whole:
            return Request(source, "", "greedy", clean(text), now.changes)
        drawing = runs.drawing_of(now) if now.decode.startswith(SAMPLE) else runs.USUAL
        return Request(source, clean(text), now.decode, None, now.changes, drawing)


SECTIONS: dict[str, TextSection] = {
    "generation": TextSection(
        generation.show, generation.EXAMPLES, whole=False, first=generation.first, note=generation.told
    ),
    "surprisal": TextSection(surprisal.show, surprisal.EXAMPLES, whole=True, first=surprisal.first),
    "lengths": TextSection(
        lengths.show, lengths.EXAMPLES, whole=True, first=lengths.first, note=lengths.told
    ),
}
"""The sections by the value of `view` in the address; the first one opens first."""


def show() -> None:
    now = frame.open_page(PAGE)
    section = chosen(SECTIONS, now)
    frame.heading(PAGE, now)
    source = _pick(now)
    if source is None:
        frame.show_notices(session.current())
        inform(_MISSING)
        return
    _switch(section, now)
    text = section.text(now)
    place = _box(section, text, now)
    run = _run(section.asked(now, source, text))
    if run is not None:
        _fit(section, source, text, run)
        if section.note is not None:
            place.caption(section.note(run))
    now = session.current()
    frame.show_notices(now, () if run is None else run.notes)
    opened = None if run is None else Opened(section.asked(now, source, text), run, None)
    changed.show_changes(now, opened)
    frame.end(PAGE, now, () if opened is None else opened.tokens(True))
    if run is not None and opened is not None:
        with refusals():
            section.show(opened, run)
            for study in ("induction", "words"):
                menu.finding(f"{source.name}/{study}")
            menu.finding("pretraining")


def _pick(now: State) -> Source | None:
    """Draws the sidebar; returns the chosen language model, None if there is none."""
    with st.sidebar:
        place = st.container()
        menu.draw()
    names = list(catalogue.language_models())
    if not names:
        return None
    asked = None if now.model in catalogue.available() else now.model
    name = noticed(fit_model(asked, names))
    with place:
        choose(
            "language model",
            "Model",
            {each: models.handle(each).title for each in names},
            name,
            lambda name: session.change(model=name, decoder=None, **session.RUN),
            labelled=True,
        )
    return models.find(name)


def _switch(section: TextSection, now: State) -> None:
    """The switch between the sections; a text of one's own stays, an example does not."""
    own = now.prompt is not None and now.prompt not in section.examples.values()
    switch(PAGE, now, lambda _: {**session.RUN, "prompt": now.prompt if own else None})


def _take_text(text: str) -> None:
    session.change(prompt=text, **session.FRESH)


def _box(section: TextSection, text: str, now: State) -> DeltaGenerator:
    """The text, the way of decoding if the model writes, and the examples; returns the place behind them."""
    box, *way, button = st.columns([8.8, 1] if section.whole else [6.2, 2.6, 1], vertical_alignment="bottom")
    with box:
        st.text_input(
            "Text",
            text,
            label_visibility="collapsed",
            placeholder="Type a text" if section.whole else "Nothing: the model begins from <s>",
            **control("prompt", text, _take_text),
        )
    for place in way:
        with place:
            sentence.decoding(now)
    with button:
        label = "Read" if section.whole else "Continue"
        st.button(label, type="primary", width="stretch", on_click=session.keep)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="examples"):
        examples(section.examples, _take_text)
        if not section.whole:
            sentence.draw_again(now)
        return st.container(width="stretch", key="lm-note")


def _run(asked: Request) -> Translation | None:
    """The run that is asked for; None if it was refused, and the page has said why."""
    try:
        with waiting.Teller(asked.source, "Reading" if asked.target is not None else "Writing") as teller:
            return runs.traced(asked, teller)
    except (ValueError, OSError) as error:
        st.error(refusal(error), icon=":material/error:")
        return None


def _fit(section: TextSection, source: Source, text: str, run: Translation) -> None:
    """Fits the cursor and the head to the run, and keeps what the page chose."""
    now = session.current()
    heads = noticed(fit_heads(now, source))
    step = noticed(fit_position("step", now.step, len(run.target_tokens)))
    step = section.first(run) if step is None else step
    session.resolve(model=source.name, prompt=text, step=step, source=None, **heads)


show()
