"""A visitor's web-socket, spoken as a browser speaks it: what a visitor does, and what the server
sends.

A browser shows a step before it tells the server, so a step's time is what the server takes to hear
of it.
"""

import asyncio
import hashlib
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect
from websockets.typing import Origin, Subprotocol

SENTENCE = "Sentence to translate"
"""The label of the box that takes a sentence."""
CONTROLS = ("selectbox", "checkbox", "slider", "button_group", "button", "number_input")
MOST_BYTES = 64 * 2**20
"""Bytes of the largest message that is read."""
PATIENCE = 120.0
"""Seconds after which an answer counts as missing."""
_WHOLE, _PART = ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY


class FailedError(Exception):
    """The server did not answer, or said that something went wrong."""


class SaidError(FailedError):
    """The page says in a sentence what is wrong."""


class Session:
    """One visitor, mostly of a page with a linked view."""

    def __init__(
        self,
        base: str,  # the address of the server, `http://127.0.0.1:8501`
        page: str = "",  # the name of the page; the home page if empty
        cookies: dict[str, str] | None = None,  # those of another tab of the same browser
    ) -> None:
        self._base, self._page = base, page
        self.cookies = dict(cookies or {})
        self._query, self._hash = "", ""
        self._cache: dict[str, ForwardMsg] = {}
        self._values: dict[
            str, tuple[str, Any]
        ] = {}  # what this visitor set: the widget's field and value
        self._names: dict[str, str] = {}  # hashes of the pages
        self.controls: dict[
            str, tuple[str, Any, str]
        ] = {}  # sort, element and fragment of each, by its id
        self._box: tuple[str, str] | None = None  # the box for a sentence: its id and its fragment
        self._view: tuple[str, str] | None = None  # the linked view: its id and its fragment
        self._link: Any = None
        self._fresh: set[tuple[str, str]] = (
            set()
        )  # what the present run has drawn: each id and its fragment
        self._seq = 0
        self._finished: int | None = None
        self.shown: dict[str, Any] = {}  # what the view was told last
        self.feeds: dict[
            str, tuple[str, str, float]
        ] = {}  # trace, hash and time of arrival of each figure
        self.badges: dict[str, str] = {}  # what the badge of each figure says
        self.strips: dict[str, Any] = {}  # the tokens
        self.bytes = 0

    async def open(self, **params: str) -> float:
        """Opens the page and waits for its picture; seconds until its last figure."""
        self.cookies = self.cookies or await asyncio.to_thread(self._cookies)
        address = f"{self._base.replace('http', 'ws', 1)}/_stcore/stream"
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        self._link = await connect(
            address,
            origin=Origin(self._base),
            subprotocols=[Subprotocol("streamlit")],
            additional_headers=headers,
            max_size=MOST_BYTES,
            open_timeout=PATIENCE,
            ping_timeout=PATIENCE,
        )
        return await self.follow(**params)

    def _cookies(self) -> dict[str, str]:
        """Cookies that come with the page; a proxy knows its visitors by them."""
        cookies: dict[str, str] = {}
        for path in (f"/{self._page}", "/_stcore/health", "/_stcore/host-config"):
            sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
            try:
                with urllib.request.urlopen(
                    urllib.request.Request(self._base + path, headers=sent), timeout=PATIENCE
                ) as answer:
                    for line in answer.headers.get_all("Set-Cookie") or []:
                        cookies |= {
                            name: morsel.value for name, morsel in SimpleCookie(line).items()
                        }
            except urllib.error.URLError as error:
                raise FailedError(f"{path}: {error}") from error
        return cookies

    async def leave(self) -> None:
        """Closes the page."""
        if self._link is not None:
            await self._link.close()

    async def follow(self, **params: str) -> float:
        """Opens the page by a link; seconds until its last figure."""
        self._query = urlencode(params)
        return await self._sentence(lambda: self._send(None))

    async def go(self, page: str, **params: str) -> None:
        """Opens another page by the menu, with or without a linked view, and waits until it is
        drawn."""
        self._page = page
        self._query = urlencode(params)
        self._hash = self._names[page]
        self._box = self._view = None
        for left in (self._values, self.shown, self.feeds, self.badges, self.strips):
            left.clear()
        await self._send(None)
        await self._until(f"the page {page}")

    async def choose(self, key: str, kind: str, value: Any) -> None:
        """Changes a control, or presses a button, and waits until the answer is drawn."""
        fragment = self.controls[key][2]
        self._values[key] = (kind, value)
        await self._send(fragment)
        if kind == "trigger_value":
            del self._values[key]
        await self._until(f"an answer of {self._page or 'app'}")

    @property
    def linked(self) -> bool:
        """Whether there is a linked view with a box for a sentence."""
        return self._view is not None and self._box is not None and "trace" in self.shown

    async def type(self, text: str) -> float:
        """Types another sentence and presses Enter; seconds until its last figure."""
        if self._box is None:
            raise FailedError("there is no box for a sentence")
        box, fragment = self._box
        self._values[box] = ("string_value", text)
        return await self._sentence(lambda: self._send(fragment))

    async def step(self, number: int) -> float:
        """Moves the cursor to a step, from 0; seconds until the server has finished answering."""
        if self._view is None:
            raise FailedError("there is no linked view")
        self._seq = max(self._seq, int(self.shown["ack"])) + 1
        key, fragment = self._view
        at = {
            "step": number,
            "source": None,
            "seq": self._seq,
            "trace": self.shown["trace"],
            "pick": None,
        }
        self._values[key] = ("json_value", json.dumps({"at": at | {"present": False}}))
        start = time.perf_counter()
        await self._send(fragment)
        await self._until("a step", lambda: self.shown["ack"] >= self._seq)
        return time.perf_counter() - start

    def steps(self) -> int:
        """Number of steps of the translation on the screen."""
        return int(self.strips.get("steps", 1))

    def answer(self) -> dict[str, str]:
        """The hash of each figure on the screen with what its badge says now, and the name of the
        translation."""
        trace = self.shown["trace"]
        figures = {
            name: f"{digest} {self.badges.get(name, '')}"
            for name, (of, digest, _) in self.feeds.items()
            if of == trace
        }
        return figures | {"trace": trace}

    async def _sentence(self, send: Callable[[], Any]) -> float:
        before = self.shown.get("trace")
        start = time.perf_counter()
        await send()
        await self._until("a sentence", lambda: self._complete(before))
        return (
            max(arrived for of, _, arrived in self.feeds.values() if of == self.shown["trace"])
            - start
        )

    def _complete(self, before: object) -> bool:
        trace = self.shown.get("trace")
        if trace in (None, before):
            return False
        names = {*self.shown["plots"], "strips"}
        return names <= {name for name, (of, *_) in self.feeds.items() if of == trace}

    async def _send(self, fragment: str | None) -> None:
        message = BackMsg()
        rerun = message.rerun_script
        rerun.query_string = self._query
        rerun.page_script_hash = self._hash
        rerun.page_name = self._page
        if fragment:
            rerun.fragment_id = fragment
        rerun.cached_message_hashes.extend(self._cache)
        rerun.context_info.url = f"{self._base}/{self._page}"
        for key, (kind, value) in self._values.items():
            widget = rerun.widget_states.widgets.add(id=key)
            if isinstance(value, list):
                getattr(widget, kind).data.extend(value)
            else:
                setattr(widget, kind, value)
        if not fragment:
            self.controls.clear()
        self._finished = None
        await self._link.send(message.SerializeToString())

    async def _until(self, what: str, done: Callable[[], bool] = lambda: True) -> None:
        """Reads what the server sends until its run is over, and a condition holds."""
        try:
            async with asyncio.timeout(PATIENCE):
                while self._finished not in (_WHOLE, _PART) or not done():
                    data = await self._link.recv()
                    self.bytes += len(data)
                    message = ForwardMsg()
                    message.ParseFromString(data)
                    self._take(message)
        except TimeoutError as error:
            raise FailedError(f"no answer to {what} within {PATIENCE:g} s") from error

    def _take(self, message: ForwardMsg) -> None:
        if message.HasField("ref_hash"):
            cached = ForwardMsg()
            cached.CopyFrom(self._cache[message.ref_hash])
            cached.metadata.CopyFrom(message.metadata)
            message = cached
        elif message.metadata.cacheable:
            self._cache[message.hash] = message
        match message.WhichOneof("type"):
            case "navigation":
                pages = message.navigation.app_pages
                self._names = {page.url_pathname: page.page_script_hash for page in pages}
                self._hash = self._names[self._page]
            case "new_session":
                self._hash = message.new_session.page_script_hash  # a button may open another page
                self._page = next(
                    (name for name, of in self._names.items() if of == self._hash), self._page
                )
                self._fresh = set()
            case "page_info_changed":
                self._query = message.page_info_changed.query_string
            case "script_finished":
                self._finished = message.script_finished
                if self._finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                    raise FailedError("a script that does not compile")
                if self._finished in (_WHOLE, _PART):
                    self._lose()
                if (
                    self._finished == _WHOLE
                ):  # a browser forgets the oldest messages after some runs
                    for key in list(self._cache)[: max(0, len(self._cache) - 60)]:
                        del self._cache[key]
            case "delta":
                self._draw(message.delta)

    def _feed(self, feed: dict[str, Any]) -> None:
        """Takes a figure; or a proof, which says what the badges of figures say from now on."""
        if feed["draw"] == "proof":
            self.badges |= {name: badge["text"] for name, badge in feed["badges"].items()}
            return
        name = feed["name"]
        self.badges[name] = (feed.pop("badge", None) or {}).get("text", "")
        digest = hashlib.sha256(json.dumps(feed).encode()).hexdigest()[:16]
        self.feeds[name] = feed["trace"], digest, time.perf_counter()
        if name == "strips":
            self.strips = feed

    def _lose(self) -> None:
        """Loses what the run did not draw again: of the whole page, or of the parts that ran."""
        ran = {fragment for _, fragment in self._fresh}

        def lost(key: str, fragment: str) -> bool:
            return (key, fragment) not in self._fresh and (
                self._finished == _WHOLE or fragment in ran
            )

        self.controls = {
            key: control for key, control in self.controls.items() if not lost(key, control[2])
        }
        self._box, self._view = (
            None if element and lost(*element) else element for element in (self._box, self._view)
        )
        there = {*self.controls, *(element[0] for element in (self._box, self._view) if element)}
        self._values = {key: value for key, value in self._values.items() if key in there}

    def _draw(self, delta: Delta) -> None:
        element = delta.new_element
        sort = element.WhichOneof("type")
        if sort in CONTROLS and not (control := getattr(element, sort)).disabled:
            self.controls[control.id] = sort, control, delta.fragment_id
            self._fresh.add((control.id, delta.fragment_id))
        match sort:
            case "exception":
                raise FailedError(f"{element.exception.type}: {element.exception.message}")
            case "alert" if "error" in element.alert.icon:
                raise SaidError(element.alert.body)
            case "text_input" if element.text_input.label == SENTENCE:
                self._box = (element.text_input.id, delta.fragment_id)
                self._fresh.add(self._box)
            case "bidi_component":
                component = element.bidi_component
                if component.component_name.endswith("linked_view_feeder"):
                    self._feed(json.loads(component.json)[0])
                elif component.component_name.endswith("linked_view"):
                    self.shown = json.loads(component.json)[0]
                    self._view = (component.id, delta.fragment_id)
                    self._fresh.add(self._view)
