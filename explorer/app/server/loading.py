"""PyTorch and the model that opens first, loaded in a thread of their own behind the first picture.

An import holds its lock for seconds, and other threads see modules that are only half imported:
Plotly uses the pandas that it finds loaded. So the thread starts after the first picture is on the
screen, or as soon as somebody waits, and nobody imports these libraries before `Loading.wait` has
returned.
"""

import gc
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from importlib import import_module

from explorer.app.server.queue import pages

LIBRARIES = ("pandas", "torch", "transformer.translator")


class Loading:
    """Libraries and a model, loaded once for all visitors; the thread touches nothing of Streamlit.

    Attributes:
        begun: whether the thread was started.
        done: whether all is loaded, so that nobody needs to wait any more.
    """

    def __init__(
        self,
        # loads the model after the libraries. Whoever asks for the model later gets its errors.
        load: Callable[[], object],
    ) -> None:
        self._load = load
        self._loaded = Future[None]()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=lambda: self._run(), daemon=True)
        self.begun = self.done = False

    def begin(self) -> None:
        """Starts the thread, unless it was started."""
        with self._lock:
            if not self.begun:
                self.begun = True
                self._thread.start()

    def wait(self) -> None:
        """Returns when everything is loaded; ImportError if a library cannot be imported."""
        self.begin()
        with pages.paused():
            self._loaded.result()

    def _run(self) -> None:
        try:
            for name in LIBRARIES:
                import_module(name)
            with suppress(Exception):
                self._load()
            # Among all the objects of PyTorch, a collection takes longer than the run of a page.
            gc.collect()
            gc.freeze()
            self.done = True
            self._loaded.set_result(None)
        except BaseException as error:
            self._loaded.set_exception(error)
