"""Recurrent: the same sentence through a recurrent network with attention and through a Transformer."""

from __future__ import annotations

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("recurrent"):
    from collections.abc import Sequence
    from contextlib import suppress
    from dataclasses import replace

    from explorer.app.address import State, session
    from explorer.app.sections.recurrent import maps, path, twins
    from explorer.app.server import catalogue, models
    from explorer.app.shell import frame, menu, paragraph, sections
    from explorer.app.shell.models.model_picker import pick_model
    from explorer.app.shell.sentence import sentence_box

_SECTIONS = (maps, path)
_STUDIES = ("recurrent-length", "recurrent-speed", "hard-attention")


def show() -> None:
    now = frame.open_page("recurrent")
    frame.heading("recurrent", now)
    source = pick_model(now, "recurrent")
    if source is not None:
        now = replace(now, text=twins.text_of(now))
        sentence_box(source, now)
        paragraph.draw(source, now)
    sections.draw("recurrent", _SECTIONS, now, session.current())
    for study in _STUDIES:
        menu.finding(study)
    frame.end("recurrent", now, _tokens(session.current()))
    frame.show_notices(session.current())


def _tokens(now: State) -> Sequence[str]:
    """The pieces of the twin's run; none without a twin, or for a text that it refuses."""
    source, score = models.known(twins.REFERENCE), twins.score_of(now)
    with suppress(KeyError, ValueError):
        source = models.find(f"{catalogue.RECURRENT}/{score}") if score is not None else source
        return () if source is None else twins.opened(now, source).tokens()
    return ()


show()
