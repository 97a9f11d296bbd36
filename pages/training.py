"""Training: what a model is shown, what its loss is, how it went, and a small model that learns
here."""

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("training"):
    import streamlit as st

    from explorer.app.address import session
    from explorer.app.controls import plain
    from explorer.app.sections.training import history, lesson, loss, schedule, workshop
    from explorer.app.server import examples
    from explorer.app.server.source import Source
    from explorer.app.server.view import View
    from explorer.app.shell import menu, sections
    from explorer.app.shell.changed import none
    from explorer.app.shell.page import open_sentence_page, show_with_model
    from explorer.app.shell.sentence import own_translation


def show(opened: View) -> None:
    now = session.current()
    if opened.run_key.target is not None and now.target is None:
        st.caption(plain(lesson.about_target(opened.source.header)))
    sections.draw("training", (lesson, loss, schedule, history, workshop), now, opened, now)
    for study in ("adam", "residuals", "cost"):
        menu.finding(study)


def reference(source: Source | None, text: str | None) -> str | None:
    """The reference translation of an example; None for any other text."""
    example = examples.example_of(source, examples.text_on(source, text))
    return None if example is None else example.reference


session.adopt()
if session.current().view == "here":
    workshop.show()
else:  # training sees the model as it is: no change holds
    opened = open_sentence_page("training", own_translation, changes=none, target=reference)
    if opened is not None:
        show_with_model(opened, show)
