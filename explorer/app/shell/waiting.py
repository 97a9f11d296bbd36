"""Sentences of a page that waits for PyTorch or for a model."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app.address import session
from explorer.app.controls import plain
from explorer.app.server import memory, models
from explorer.app.server.models import ModelHandle
from explorer.app.server.queue import place, turns
from explorer.app.server.runs import Progress
from explorer.app.server.source import Source
from explorer.app.shell import frame
from explorer.figures.base import labels
from transformer.hub.files import size

_PROGRESS_EVERY = 0.2
_STARTING = "PyTorch and the model are still loading, because the server has just started."


def loads(source: ModelHandle) -> str:
    """Says what takes so long if a model is not in memory."""
    if not models.loading.done:
        return _STARTING
    needed, free = source.needs, memory.available()
    return f"Loading {plain(source.name)}: it needs {size(needed)} of memory, {size(free)} is free"


@contextmanager
def while_loading() -> Iterator[None]:
    """Says why it takes so long while what is inside waits for PyTorch."""
    if models.loading.done:
        yield
        return
    with st.spinner(_STARTING):
        yield


@contextmanager
def for_pytorch(
    page: str,  # the name of the page, as `sitemap` has it
) -> Iterator[None]:
    """Waits before the imports of a page that needs PyTorch, and then runs the page again from its start."""
    if not models.loading.done:
        frame.heading(page, frame.open_page(page, declared=False))
        with while_loading():
            models.loading.wait()
        session.rerun()
    yield


@contextmanager
def progress(
    text: str,  # what is computed
    stop: str = "",  # the key of a button that stops it; none if empty, as in a part, whose clicks must wait
) -> Iterator[Callable[[float], object]]:
    """A bar while something long is computed, which hears what share is done, and waits for its turn.

    What is kept already says nothing, and needs no turn. If other work waits, a turn ends at the next share.
    Whoever clicks elsewhere or leaves ends it.
    """
    with ExitStack() as turn:
        bar, button, begun = st.progress(0.0, text), st.empty(), False

        def tell(share: float) -> None:
            nonlocal begun
            done = min(share, 1.0)
            if not begun and stop and button.button("Stop", key=stop):
                with st.container(horizontal=True, vertical_alignment="center"):
                    st.caption(f"Stopped: {text[0].lower()}{text[1:]}.", width="content")
                    st.button("Continue")
                st.stop()
            if not begun or turns.count()[1]:  # what waits may be shorter
                begun = True
                turn.close()
                turn.enter_context(
                    turns.turn(object(), lambda before: bar.progress(done, place(before)), session.browser())
                )
            bar.progress(done, text)

        yield tell
        for each in (bar, button):
            each.empty()


@dataclass
class Teller(Progress, AbstractContextManager["Teller"]):
    """Tells the visitor, in one place on the page, how far a run of a model has come, while it runs."""

    source: Source  # the model, or the open file
    does: str  # what the model does, such as `Translating`
    place: DeltaGenerator = field(default_factory=st.empty)  # where it stands
    last: float = field(default_factory=time.monotonic)  # when something was said

    def loads(self) -> None:
        assert isinstance(self.source, ModelHandle)  # a file loads nothing
        self.place.progress(0, loads(self.source))

    def waits(self, before: int) -> None:
        self.place.progress(0, place(before))

    def wrote(self, count: int, token: str) -> None:
        if time.monotonic() - self.last > _PROGRESS_EVERY:
            self.last = time.monotonic()
            word = plain(labels.piece(token))
            text = f"{self.does}: {count} token{'s' * (count != 1)} so far, the last one {word}"
            self.place.progress(min(0.98, 1 - 0.98**count), text)

    def __exit__(self, *error: object) -> None:
        """Clears the place, also after a refusal."""
        self.place.empty()
