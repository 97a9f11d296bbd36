"""The quiet line after the picture: the model is unsure of its output, or a beam finds a better
one."""

import math

import streamlit as st

from explorer.app.address import session
from explorer.app.address.kinds import BEAM
from explorer.app.controls import part, plain
from explorer.app.server import doubts, jobs
from explorer.app.server.doubts import BEAM_SIZE, Better
from explorer.app.server.jobs import Job
from explorer.app.server.view import View
from explorer.figures.base import labels
from explorer.figures.base.tasks import WORDS
from explorer.lenses.words.doubt import mean_log_prob

_KEY = "doubt"
# Draws this part again twice a second while it is there. The clock of a fragment of its own
# could only be stopped by drawing the whole page, for which Streamlit takes the linked view off the
# page for a moment: quick clicks would be lost.
_CLOCK = st.components.v2.component(
    "doubt_clock",
    js="""export default ({ setTriggerValue }) => {
  const clock = setInterval(() => setTriggerValue("look", true), 500);
  return () => clearInterval(clock);
};""",
)
_LONGEST = 36
"""Most letters of the better output, so that the line stays one."""
_MEANING = (
    "The geometric mean of the probabilities that the model gave the tokens it wrote, and the "
    "mean that four of five of its outputs reach on the bundled sentences. How sure a model is "
    "tells how likely it is to be right; it does not tell what is wrong. ✓\u00a0verified is about "
    "the pictures, not the output."
)


def leave() -> None:
    """Ends the search for the sentence before, as soon as another one is asked for."""
    jobs.seat(session.visit().name).take(None)


def due(opened: View) -> bool:
    """Whether a beam is to be searched once the picture is painted.

    Not while a question is open.
    """
    return _may_search(opened) and not _search(opened).wanted_by(session.visit().name)


def begin(opened: View) -> str:
    """Asks for the search; returns the key of the part that is then drawn again."""
    _search(opened).ask(session.visit().name)
    return _KEY


def unsure(opened: View) -> str:
    """That the model is less sure of its own output than it usually is, in a sentence.

    Else empty, as for a run without an output.
    """
    run, limit = opened.translation, opened.source.unsure_below
    if limit is None or run.method != "greedy" or run.interventions:
        return ""
    mean = mean_log_prob(run.log_probs)
    if mean >= limit:
        return ""
    output = WORDS[opened.source.task].output
    percents, usual = (labels.percent(math.exp(value)) for value in (mean, limit))
    return f"This {output} may be wrong: {percents} for a token, where over {usual} is usual."


@part(key=_KEY)
def tell(opened: View) -> None:
    """Draws the line; nothing while a question is open, which it could answer."""
    if session.visit().silent is not None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=_KEY):
        if doubted := unsure(opened):
            st.caption(f":material/help: {plain(doubted)}", width="content", help=_MEANING)
        if not _may_search(opened) or due(opened):
            return
        if jobs.stays(search := _search(opened)):
            _CLOCK(key="doubt.clock", on_look_change=lambda: None)
        elif (better := search.result()) is not None and better.differs:
            _offer(better)


def _may_search(opened: View) -> bool:
    is_silent = session.visit().silent is not None
    return not is_silent and doubts.may_search(opened.run_key, opened.translation)


def _search(opened: View) -> Job[Better]:
    return doubts.by_beam(opened.run_key, greedy=opened.translation)


def _offer(better: Better) -> None:
    text = plain(labels.shorten(better.text, _LONGEST))
    score, usual = (labels.number(score, ".3f") for score in (better.score, better.greedy_score))
    st.caption(
        f":material/alt_route: A beam of {BEAM_SIZE} finds what scores higher: “{text}”",
        width="content",
        help=f"“{plain(better.text)}” The score of this model's beam search is {score}, and {usual} "
        "for the greedy output. Higher is more probable to the model, which is not always better "
        "to a reader.",
    )
    st.button("Open it", type="tertiary", on_click=_open, key="doubt.open")


def _open() -> None:
    session.change(**session.RUN, decode=f"{BEAM}{BEAM_SIZE}")
