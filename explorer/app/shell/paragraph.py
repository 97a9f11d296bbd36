"""A text of several sentences: the shown one marked, and the translation of the whole under it.

The browser asks for the translations of the other sentences one at a time, when it has shown what
it has: a full run of the page makes none, and whatever the visitor does meanwhile comes first.
"""

from dataclasses import replace

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import AS_ONE
from explorer.app.controls import part
from explorer.app.server import examples, runs
from explorer.app.server.run_key import RunKey
from explorer.app.server.source import Source
from explorer.linked.served import imported

_KEY = "paragraph"
_SCRIPT = imported("page/paragraph.js")
_paragraph = st.components.v2.component(
    _KEY,
    js=f"export default async (part) =>\n  (await {_SCRIPT}).show({{ ...part, data: part.data[0] }});",
    isolate_styles=False,
)


def draw(
    source: Source,
    now: State,
    translated: bool = False,  # whether the translation of the whole stands under the text
) -> None:
    """Draws a text of several sentences; nothing for one sentence."""
    if len(examples.passage(source, now).sentences) < 2:
        return
    _draw(source, now, translated, ["this is the run of the page"])


@part()
def _draw(source: Source, before: State, translated: bool, first: list[str]) -> None:
    now = session.current()
    if now.sentence != before.sentence:
        session.rerun()
    sentences = examples.passage(source, now).sentences[: examples.MOST_SENTENCES]
    asks = bool(session.sent(_KEY).get("more")) and not first
    first.clear()
    data = {
        "sentences": sentences,
        "at": AS_ONE if now.sentence == AS_ONE else min(now.sentence or 0, len(sentences) - 1),
        "translations": _translations(source, now, sentences, asks)
        if translated and now.sentence != AS_ONE
        else None,
    }
    _paragraph(key=_KEY, data=[data], on_at_change=_go, on_more_change=_more)


def _go() -> None:
    at = session.sent(_KEY).get("at")
    if at is not None:
        session.change(sentence=int(at) or None, target=None, **session.FRESH)


def _more() -> None:
    """What the browser asks for is made when the part is drawn."""


def _translations(
    source: Source, now: State, sentences: tuple[str, ...], asks: bool
) -> list[str | None]:
    """Translations of the sentences, from the shown one on.

    If asked, one that is missing is made.
    """
    found: list[str | None] = [None] * len(sentences)
    at = min(now.sentence or 0, len(sentences) - 1)
    for i in (*range(at, len(sentences)), *range(at)):
        if not source.resident:
            break
        run_key = RunKey.of(
            now if i == at else replace(now, target=None, changes=()), source, sentences[i]
        )
        try:
            found[i] = runs.text_of(run_key)
            if found[i] is None and asks:
                # nobody asked for it: after each token, a waiting run of the page goes first
                found[i] = runs.text_of(run_key, lambda share, text: session.current())
                asks = False
        except ValueError:
            found[i] = "…"
    return found
