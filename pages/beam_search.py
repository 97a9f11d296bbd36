"""Search: how a translation is looked for, as the tree of a beam search or of several samples."""

from explorer.app.address.sitemap import Page, Section
from explorer.app.shell.waiting import for_pytorch

PAGE = Page(
    "Beam search",
    "The translations that the model considered, as a tree, and why it chose this one.",
    group="Explore",
    follows="whole_model",
    icon=":material/alt_route:",
    sections={
        "beam": Section(
            "beam search",
            "Beam search keeps several unfinished translations at once. The tree shows the best "
            "2 × beam continuations of each step.",
        ),
        "sampling": Section(
            "sampling",
            "Sampling draws each token at random, by its probability after temperature, top-k "
            "and top-p. Several draws form a tree.",
        ),
    },
)

with for_pytorch("beam_search"):
    import streamlit as st

    from explorer.app.address import session
    from explorer.app.sections.beam_search import beam, sampling
    from explorer.app.server.view import View
    from explorer.app.shell import sections
    from explorer.app.shell.page import open_sentence_page, with_model

_SECTIONS = (beam, sampling)


def show(opened: View) -> None:
    now = session.current()
    if opened.request.target is not None:
        st.caption("Your own translation plays no part here: the model looks for one itself.")
    sections.draw("beam_search", _SECTIONS, now, opened, now)


opened = open_sentence_page("beam_search", way=None)
if opened is not None:
    with_model(opened, show)
