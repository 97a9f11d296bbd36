"""Training: what a model is shown, what its loss is, how it went, and a small model that learns
here."""

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("training"):
    from dataclasses import replace

    import streamlit as st

    from explorer.app.address import State, session
    from explorer.app.controls import plain
    from explorer.app.sections.training import (
        history,
        lengths,
        lesson,
        loss,
        schedule,
        surprisal,
        workshop,
    )
    from explorer.app.server import examples
    from explorer.app.server.source import Source
    from explorer.app.server.view import View
    from explorer.app.shell import menu, sections
    from explorer.app.shell.changed import none
    from explorer.app.shell.page import open_sentence_page, show_with_model
    from explorer.app.shell.sentence import own_translation


SECTIONS = (lesson, surprisal, lengths, loss, schedule, history, workshop)


def show(opened: View) -> None:
    now = session.current()
    if "source" in opened.sides and opened.run_key.target is not None and now.target is None:
        st.caption(plain(lesson.about_target(opened.source.header)))
    sections.draw("training", SECTIONS, now, opened, now)
    for study in ("adam", "residuals", "cost"):
        menu.finding(study)


def as_in_training(source: Source, now: State) -> State:
    """The state with what training would show: a text that is continued as a whole, otherwise the
    visitor's own output, or the reference of an example; the model's own output for any other."""
    example = examples.example_of(source, examples.text_on(source, now.text))
    reference = None if example is None else example.reference
    return replace(now, write=0, target=now.target or reference)


session.adopt()
if session.current().view == "here":
    workshop.show()
else:  # training sees the model as it is: no change holds
    opened = open_sentence_page("training", own_translation, changes=none, reading=as_in_training)
    if opened is not None:
        show_with_model(opened, show)
