"""Bytes of a page's web-socket messages on the wire, where the server deflates them."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page, WebSocket

HEADER = ((126, 2), (2**16, 4))
"""Bytes of a frame's header, below so many bytes of content; 10 above."""


class Wire:
    """Counts the bytes of a page's messages, deflated as uvicorn deflates them, each after those before it.

    A browser tells messages only as they are once inflated.
    """

    def __init__(
        self,
        page: Page,  # the page, before it opens an address of the app
    ) -> None:
        self.received, self.sent = 0, 0
        page.on("websocket", self._listen)

    def clear(self) -> None:
        """Begins to count anew."""
        self.received, self.sent = 0, 0

    def _listen(self, link: WebSocket) -> None:
        down, up = (zlib.compressobj(wbits=-12, memLevel=5) for _ in range(2))

        def receive(data: str | bytes) -> None:
            self.received += _size(down, data)

        def send(data: str | bytes) -> None:
            self.sent += _size(up, data)

        link.on("framereceived", receive)
        link.on("framesent", send)


def _size(deflate: zlib._Compress, data: str | bytes) -> int:
    content = data.encode() if isinstance(data, str) else data
    size = len(deflate.compress(content)) + len(deflate.flush(zlib.Z_SYNC_FLUSH)) - 4  # RFC 7692, 7.2.1
    return size + next((header for below, header in HEADER if size < below), 10)
