"""Training: what a model is shown, what its loss is, how it went, and a small model that learns
here."""

from explorer.app.address.sitemap import Page, Section
from explorer.app.shell.waiting import for_pytorch

PAGE = Page(
    "Training",
    (
        "What a model is shown, what its loss asks for, how it went; and a small model that learns "
        "here."
    ),
    group="Models",
    follows="positions",
    icon=":material/model_training:",
    sections={
        "shown": Section(
            "what it is shown",
            (
                "Training shows the model the whole target at once; every position learns in the "
                "same pass."
            ),
        ),
        "loss": Section(
            "loss",
            (
                "Label smoothing asks for a little less than certainty: what that does at one "
                "position."
            ),
        ),
        "schedule": Section(
            "schedule",
            (
                "The learning rate rises while training warms up, then falls. Here is how, step by "
                "step."
            ),
        ),
        "history": Section(
            "how it went",
            "What this model's own training measured, from its first step to its last.",
        ),
        "here": Section(
            "train here",
            "A small model learns a small task on this server, while you watch.",
            draws="the model that is being trained",
        ),
    },
)

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
    from explorer.app.shell.page import open_sentence_page, with_model
    from explorer.app.shell.sentence import own_translation


def show(opened: View) -> None:
    now = session.current()
    if opened.request.target is not None and now.target is None:
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
        with_model(opened, show)
