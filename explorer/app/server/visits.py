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


class FullError(ValueError):
    """The process has as many visitors as it takes."""


class Visits:
    """The sessions that have run a page, each until its page has been closed for a while."""

    def __init__(self, seconds: float = LOOK) -> None:
        """``seconds`` lie between two looks at a visit that was left."""
        self._seconds = seconds
        self._sessions: set[str] = set()
        self._watched: set[str] = set()
        self._bounded: WeakSet[Uploads] = WeakSet()
        self._lock = threading.Lock()

    def enter(self, server: runtime.Runtime, session_id: str) -> None:
        """Notes that a session runs a page; from now on it may upload.

        FullError if it is one too many; the message says so in one sentence.
        """
        most = Bounds.from_environment().visitors
        with self._lock:
            active = list(filter(server.is_active_session, self._sessions))
            if session_id not in self._sessions and len(active) >= most:
                hosted.log("refused", why="visitors")
                raise FullError(
                    f"This server is full, as {most:g} visitors are here: come back later."
                )
            self._sessions.add(session_id)
            uploads = server.uploaded_file_mgr
            if isinstance(uploads, Uploads) and uploads not in self._bounded:
                self._bounded.add(uploads)
                bound(uploads, self._sessions)

    def leave(self, server: runtime.Runtime, session_id: str) -> None:
        """Looks from now on whether a session's page is still closed, and ends the visit if so."""
        with suppress(RuntimeError):  # Streamlit calls this in its event loop, a test without one
            loop = asyncio.get_running_loop()
            if session_id not in self._watched:
                self._watched.add(session_id)
                look = partial(self._look, loop, server, session_id, was_closed=False)
                loop.call_later(self._seconds, look)

    def _look(
        self,
        loop: asyncio.AbstractEventLoop,
        server: runtime.Runtime,
        session_id: str,
        *,
        was_closed: bool,
    ) -> None:
        closed = not server.is_active_session(session_id)
        if closed and was_closed:
            self.end(server, session_id)
        else:
            look = partial(self._look, loop, server, session_id, was_closed=closed)
            loop.call_later(self._seconds, look)

    def end(self, server: runtime.Runtime, session_id: str) -> None:
        """Ends a visit: its session is closed, and its place is free."""
        self._sessions.discard(session_id)
        self._watched.discard(session_id)
        server.close_session(session_id)


VISITS = Visits()
"""Those of this process."""


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
def _visit(session_id: str) -> Callable[[], None]:
    server = runtime.get_instance()
    VISITS.enter(server, session_id)
    return partial(VISITS.leave, server, session_id)


def bound(
    uploads: Uploads,
    sessions: set[str],  # those that may upload
) -> None:
    """Drops the oldest files of whoever holds too many, and files of sessions without a page.

    Streamlit takes whatever is sent for a session, asked or not, and bounds only the size of each
    file.
    """
    add = uploads.add_file

    def add_file(session_id: str, file: UploadedFileRec) -> None:
        if session_id in sessions:
            add(session_id, file)
            _trim(uploads)

    for session_id in {*uploads.file_storage} - sessions:
        uploads.remove_session_files(session_id)
    uploads.add_file = add_file  # type: ignore[method-assign]
    _trim(uploads)


def _trim(uploads: Uploads) -> None:
    while True:
        files = {
            session_id: list(files.values())
            for session_id, files in list(uploads.file_storage.items())
            if files
        }
        sizes = {
            session_id: sum(len(file.data) for file in uploaded)
            for session_id, uploaded in files.items()
        }
        too_much = [
            session_id
            for session_id, uploaded in files.items()
            if len(uploaded) > MOST_FILES or sizes[session_id] > MOST_BYTES
        ]
        if not too_much and sum(sizes.values()) <= MOST_TOGETHER:
            return
        most = too_much[0] if too_much else max(sizes, key=sizes.__getitem__)
        uploads.remove_file(most, files[most][0].file_id)
