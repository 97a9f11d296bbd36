"""The line that says that beam search finds a translation which the model itself holds for better."""

from __future__ import annotations

import streamlit as st

from explorer.app.address import session
from explorer.app.address.kinds import BEAM
from explorer.app.controls import part, plain
from explorer.app.server import runs
from explorer.app.server.view import View
from explorer.figures.base import labels
from explorer.linked.view.home import HOME

_KEY = "better"
_SIZE = 4
"""The beam of the paper (section 6.1)."""
_LONGEST = 70
"""Letters of the translation that the line shows, so that it stays one line."""


def due(opened: View) -> str | None:
    """The key of the line's part, if it searches as soon as the picture is on the screen."""
    asked = _may_say(opened) and runs.unsearched(opened.request, opened.translation, _SIZE)
    return _KEY if asked else None


def _may_say(opened: View) -> bool:
    """Whether the line may be drawn: not while a lesson's question is open, as one of them asks this."""
    return session.silent() is None and not any(
        token.startswith("<unk") for token in opened.translation.source_tokens
    )


@part(key=_KEY)
def tell(opened: View) -> None:
    """Draws the line under a greedy translation that a beam betters; nothing for any other.

    It searches only when the browser says that the picture is painted.
    """
    if not _may_say(opened):
        return
    painted = session.sent(session.view_key(HOME.view)).get("painted")
    found = runs.by_beam(opened.request, opened.translation, _SIZE, runs.Yielding() if painted else None)
    if found is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="better"):
        st.caption(
            f":material/alt_route: A beam of {_SIZE} finds what scores higher: "
            f"“{plain(labels.shorten(found.text, _LONGEST))}”",
            width="content",
            help=f"The score of this model's beam search: {labels.number(found.score, '.3f')} against "
            f"{labels.number(found.greedy, '.3f')} of the greedy translation. Higher is more probable to the "
            "model, which is not always better to a reader.",
        )
        st.button("Open it", type="tertiary", on_click=_open, key="better.open")


def _open() -> None:
    session.change(**session.RUN, decode=f"{BEAM}{_SIZE}")
