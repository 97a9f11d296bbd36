"""Loading behind the first picture: once, in a thread that knows nothing of Streamlit, its errors told."""

from __future__ import annotations

import gc
import threading

import pytest
from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx

from explorer.app.server import loading
from explorer.app.server.loading import Loading


def test_nothing_is_loaded_before_somebody_asks():
    loaded: list[str] = []
    behind = Loading(lambda: loaded.append("model"))
    assert (behind.begun, behind.done, loaded) == (False, False, [])
    behind.wait()
    assert (behind.begun, behind.done, loaded) == (True, True, ["model"])


def test_whoever_waits_waits_for_the_one_loading():
    gate, threads, waited = threading.Event(), [], []

    def load() -> None:
        threads.append(threading.current_thread())
        gate.wait(20)

    behind = Loading(load)
    behind.begin()
    visitors = [
        threading.Thread(target=lambda: (behind.wait(), waited.append(behind.done))) for _ in range(4)
    ]
    for visitor in visitors:
        visitor.start()
    assert (behind.begun, behind.done, waited) == (True, False, [])
    gate.set()
    for visitor in visitors:
        visitor.join(20)
    assert waited == [True] * 4
    assert len(threads) == 1
    assert threads[0] not in {threading.current_thread(), *visitors}


def test_the_thread_has_no_page():
    contexts: list[object] = []
    Loading(lambda: contexts.append(get_script_run_ctx(suppress_warning=True))).wait()
    assert contexts == [None]


def test_what_is_loaded_is_kept_out_of_garbage_collection():
    model: list[object] = []
    Loading(lambda: model.append(object())).wait()
    assert not any(each is model for each in gc.get_objects())


def test_a_model_that_cannot_be_loaded_is_left_to_whoever_asks_for_it():
    def load() -> None:
        raise ValueError("damaged")

    behind = Loading(load)
    behind.wait()
    assert behind.done


def test_a_library_that_is_missing_is_told_to_everybody(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loading, "LIBRARIES", ("no_such_library",))
    behind = Loading(lambda: None)
    for _ in range(2):
        with pytest.raises(ImportError, match="no_such_library"):
            behind.wait()
