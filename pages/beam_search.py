"""Search: how a translation is looked for, as the tree of a beam search or of several samples."""

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("beam_search"):
    import streamlit as st

    from explorer.app.address import session
    from explorer.app.sections.beam_search import beam, sampling
    from explorer.app.server.view import View
    from explorer.app.shell import sections
    from explorer.app.shell.page import open_sentence_page, show_with_model

_SECTIONS = (beam, sampling)


def show(opened: View) -> None:
    now = session.current()
    if opened.run_key.target is not None:
        st.caption("Your own output plays no part here: the model looks for one itself.")
    sections.draw("beam_search", _SECTIONS, now, opened, now)


opened = open_sentence_page("beam_search", way=None, writes=True)
if opened is not None:
    show_with_model(opened, show)
