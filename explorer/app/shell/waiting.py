"""Sentences of a page that waits for PyTorch or for a model."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import streamlit as st

from explorer.app.address import session
from explorer.app.controls import plain
from explorer.app.server import models
from explorer.app.server.queue import place, turns
from explorer.app.server.source import Progress
from explorer.app.shell import frame

_PROGRESS_EVERY = 0.2


@contextmanager
def while_loading() -> Iterator[None]:
    """Says why it takes so long while what is inside waits for PyTorch."""
    if models.loading.done:
        yield
        return
    with st.spinner(models.STARTING):
        yield


@contextmanager
def for_pytorch(
    page: str,  # the name of the page, as `sitemap` has it
) -> Iterator[None]:
    """Waits before the imports of a page that needs PyTorch, and then runs the page again from its
    start."""
    if not models.loading.done:
        frame.heading(page, frame.open_page(page, adopts=False))
        with while_loading():
            models.loading.wait()
        session.rerun()
    yield


@contextmanager
def progress(
    text: str,  # what is computed
    # the key of a button that stops it; none if empty, as in a part, whose clicks must wait
    stop: str = "",
) -> Iterator[Callable[[float], object]]:
    """A bar while something long is computed, which hears what share is done, and waits for its
    turn.

    What is kept already says nothing, and needs no turn. If other work waits, a turn ends at the
    next share. Whoever clicks elsewhere or leaves ends it.
    """
    with ExitStack() as turn:
        bar = st.progress(0.0, text)
        button = st.empty()
        begun = False

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
                    turns.turn(
                        object(),
                        lambda before: bar.progress(done, place(before)),
                        session.browser(),
                    )
                )
            bar.progress(done, text)

        yield tell
        for slot in (bar, button):
            slot.empty()


@contextmanager
def telling(
    does: str,  # what the model does, such as `Translating`
    # what a click on *Stop* does, which gets the number of tokens so far; None: it goes to its end
    stop: Callable[[int], None] | None = None,
) -> Iterator[Progress]:
    """Tells the visitor, in one place on the page, how far a run of a model has come, while it
    runs."""
    place = st.empty()
    button = st.empty()
    last = time.monotonic()
    steps = 0
    stops = False  # whether the button is drawn

    def tell(share: float, text: str) -> None:
        nonlocal last, steps, stops
        if not share:  # it waits for something
            place.progress(0, plain(text))
            return
        steps += 1
        if time.monotonic() - last <= _PROGRESS_EVERY:
            return
        last = time.monotonic()
        place.progress(share, f"{does}: {plain(text)}")
        if stop is not None and not stops:
            button.button("Stop", "telling.stop", on_click=lambda: stop(steps))
            stops = True

    try:
        yield tell
    finally:  # also after a refusal
        place.empty()
        button.empty()
