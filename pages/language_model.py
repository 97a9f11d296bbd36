"""Language model: a causal Transformer continues a text, or reads one.

What it attends to at every step.
"""

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import SAMPLE
from explorer.app.controls import inform, refusal, refusals
from explorer.app.controls.pickers import choose, examples
from explorer.app.sections.language_model import generation, lengths, surprisal
from explorer.app.server import models, runs
from explorer.app.server.run_key import USUAL, RunKey
from explorer.app.server.source import Source
from explorer.app.server.view import View
from explorer.app.shell import changed, frame, menu, sentence, waiting
from explorer.app.shell.fitting import fit_chosen, fit_heads, fit_position
from explorer.app.shell.model_picker import fit_listed, left_out
from explorer.app.shell.sections import chosen, switch
from transformer.run import Translation
from transformer.text.typed import without_surrogates

MISSING = "There is no language model here: put the directory of one under `models/language/`."
SECTIONS = {"generation": generation, "surprisal": surprisal, "lengths": lengths}


def show() -> None:
    """Opens the page: a text that the model continues or reads, and the chosen section."""
    now = frame.open_page("language_model")
    section = chosen(SECTIONS, now)
    reads = section is not generation  # a whole text, and writes nothing
    frame.heading("language_model", now)
    source = pick_model(now)
    if source is None:
        frame.show_notices(session.current())
        inform(MISSING)
        return
    texts = section.EXAMPLES.values()
    kept_prompt = None if now.prompt in texts else now.prompt
    switch("language_model", now, lambda _: {**session.RUN, "prompt": kept_prompt})
    text = next(iter(texts)) if now.prompt is None else now.prompt
    text_box(text, now, reads)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="examples"):
        examples(section.EXAMPLES, take_text)
        if not reads:
            sentence.draw_again(now)
        note = st.container(width="stretch", key="lm-note")
    run_key = key_of(source, text, now, reads)
    run = read(run_key)
    if run is None:
        frame.show_notices(session.current())
        changed.show_changes(session.current(), None)
        frame.end("language_model", now, refused=True)
        return
    now = session.current()
    heads = fit_heads(now, source)
    step = fit_position("step", now.step, len(run.target_tokens))
    step = section.first(run) if step is None else step
    cursor = {"step": step, "source": None, **fit_chosen(now, run)}
    now = session.resolve(model=source.name, prompt=text, **cursor, **heads)
    note.caption(section.note(run))
    opened = View(run_key, run, None)
    frame.show_notices(now, run.notes)
    changed.show_changes(now, opened)
    frame.end("language_model", now, opened.tokens(True))
    with refusals():
        section.show(opened)
        for study in (f"{source.name}/induction", f"{source.name}/words", "pretraining"):
            menu.finding(study)


def key_of(source: Source, text: str, now: State, reads: bool) -> RunKey:
    """What a run is kept by: a text that the model reads, or one that it continues.

    As it was typed, since a model may have pieces for line breaks and blanks.
    """
    if reads:
        return RunKey(source, "", "greedy", without_surrogates(text), now.changes)
    return RunKey(
        source=source,
        text=without_surrogates(text),
        decode=now.decode,
        target=None,
        changes=now.changes,
        drawing=runs.drawing_of(now) if now.decode.startswith(SAMPLE) else USUAL,
    )


def pick_model(now: State) -> Source | None:
    """Draws the sidebar; returns the chosen language model, None if there is none."""
    with st.sidebar:
        place = st.container()
        menu.draw()
    names = {name: source.title for name, source in models.catalogue().items() if source.writes}
    if not names:
        with place:
            left_out()
        return None
    name = fit_listed(None if now.model in models.available() else now.model, names)

    def take(name: str) -> None:
        session.change(model=name, decoder=None, **session.RUN)

    with place:
        choose("language model", "Model", names, name, take, labelled=True)
        left_out()
    return models.find(name)


def take_text(text: str) -> None:
    session.change(prompt=text, **session.FRESH)


def text_box(text: str, now: State, reads: bool) -> None:
    """The text, and the way of decoding if the model writes."""
    widths = [6.2, 2.6, 1]
    empty = "Nothing: the model begins by itself"
    does = "Continue"
    if reads:
        widths = [8.8, 1]
        empty = "Type a text"
        does = "Read"
    box, *way, button = st.columns(widths, vertical_alignment="bottom")
    box.text_input(
        "Text",
        text,
        label_visibility="collapsed",
        placeholder=empty,
        **session.control("prompt", text, take_text),
    )
    for place in way:
        with place:
            sentence.decoding(now)
    button.button(does, type="primary", width="stretch", on_click=session.keep)


def read(run_key: RunKey) -> Translation | None:
    """The run that is asked for; None if it was refused, and the page has said why."""
    try:
        with waiting.telling("Writing" if run_key.target is None else "Reading") as progress:
            return runs.translate(run_key, progress, whole=True)
    except (ValueError, OSError) as error:
        st.error(refusal(error), icon=":material/error:")
        return None


show()
