"""Visits to this process: how many there may be, what each may upload, when they are over."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from weakref import WeakSet

import streamlit as st
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager as Uploads
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from explorer.app.address import session
from explorer.app.server import hosted, jobs, memory, queue
from explorer.app.server.hosted import Bounds

LOOK = 50.0
"""Seconds between two looks at a visit that was left once; if the page is closed at both, the visit
is over. Streamlit keeps it for 120 seconds, and then until another visitor leaves."""
MOST_FILES = 8
"""Most uploaded files of one visit; a page needs one."""
MOST_BYTES = 64 * 2**20
MOST_TOGETHER = 256 * 2**20
"""Most bytes of the uploaded files of one visit, and of all."""
_lock = threading.Lock()
_visits: set[str] = set()  # the sessions that have run a page
_watched: set[str] = set()
_bounded: WeakSet[Uploads] = WeakSet()


class FullError(ValueError):
    """The process has as many visitors as it takes."""


def begin() -> None:
    """Notes that a visitor opens a page, and no longer waits for what another one asked for.

    FullError if the visitor is one too many; the message says so in one sentence.
    """
    memory.give_back()
    queue.begin()
    context = get_script_run_ctx()
    if context is None:
        return
    if (seat := jobs.seat(session.visit().name)).page != context.page_script_hash:
        seat.take(None)
    if runtime.exists():
        _visit(context.session_id)


@st.cache_resource(scope="session", on_release=lambda leave: leave(), show_spinner=False)
def _visit(at: str) -> Callable[[], None]:
    server = runtime.get_instance()
    most = Bounds.from_environment().visitors
    with _lock:
        if at not in _visits and len(list(filter(server.is_active_session, _visits))) >= most:
            hosted.log("refused", why="visitors")
            raise FullError(f"This server is full, as {most:g} visitors are here: come back later.")
        _visits.add(at)
        if (
            isinstance(server.uploaded_file_mgr, Uploads)
            and server.uploaded_file_mgr not in _bounded
        ):
            _bounded.add(server.uploaded_file_mgr)
            bound(server.uploaded_file_mgr, _visits)
    return partial(_leave, server, at)


def _leave(server: runtime.Runtime, at: str) -> None:
    with suppress(RuntimeError):  # Streamlit calls this in its event loop, a test without one
        loop = asyncio.get_running_loop()
        if at not in _watched:
            _watched.add(at)
            loop.call_later(LOOK, partial(_look, loop, server, at, was_closed=False))


def _look(
    loop: asyncio.AbstractEventLoop, server: runtime.Runtime, at: str, *, was_closed: bool
) -> None:
    """Forgets a visit that is closed at two looks in a row."""
    closed = not server.is_active_session(at)
    if not (closed and was_closed):
        loop.call_later(LOOK, partial(_look, loop, server, at, was_closed=closed))
        return
    _visits.discard(at)
    _watched.discard(at)
    server.close_session(at)


def bound(
    uploads: Uploads,
    visits: set[str],  # the sessions that may upload
) -> None:
    """Drops the oldest files of whoever holds too many, and files of sessions without a page.

    Streamlit takes whatever is sent for a session, asked or not, and bounds only the size of each
    file.
    """
    add = uploads.add_file

    def add_file(session_id: str, file: UploadedFileRec) -> None:
        if session_id in visits:
            add(session_id, file)
            _trim(uploads)

    for at in {*uploads.file_storage} - visits:
        uploads.remove_session_files(at)
    uploads.add_file = add_file  # type: ignore[method-assign]
    _trim(uploads)


def _trim(uploads: Uploads) -> None:
    while True:
        files = {
            at: list(files.values()) for at, files in list(uploads.file_storage.items()) if files
        }
        held = {at: sum(len(file.data) for file in each) for at, each in files.items()}
        too_much = [at for at in files if len(files[at]) > MOST_FILES or held[at] > MOST_BYTES]
        if not too_much and sum(held.values()) <= MOST_TOGETHER:
            return
        most = too_much[0] if too_much else max(held, key=held.__getitem__)
        uploads.remove_file(most, files[most][0].file_id)
