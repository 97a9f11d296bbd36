"""What one visitor of a hosted server may compute: so much processor time in a minute, one tab at a time."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest
from waiting import until

from transformer.hub.settings import HOSTED_VARIABLE
from ui.server.hosting import shares
from ui.server.hosting.bounds import SECONDS
from ui.server.hosting.shares import LaterError, ProcessorShares, computing
from ui.server.stores import Recent


def test_a_share_forgets_what_is_a_minute_old_and_knows_visitors_apart() -> None:
    now = 0.0
    known = ProcessorShares(lambda: now)
    one, other = known.of("one"), known.of("other")
    known.spend(one, 3)
    now = 20.0
    known.spend(one, 4)
    assert known.wait(one, 8) == 0
    assert known.wait(one, 7) == 40  # until the 3 s are a minute old
    assert known.wait(one, 4) == 60  # until the 4 s are
    assert known.wait(other, 1) == 0
    now = 60.0
    assert known.wait(one, 7) == 0
    assert known.of("one") is one


@pytest.fixture
def visitor(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A hosted server, and whose page runs."""
    present = SimpleNamespace(name="one")
    monkeypatch.setenv(HOSTED_VARIABLE, "on")
    monkeypatch.setattr(shares, "shares", ProcessorShares())
    monkeypatch.setattr(shares, "get_script_run_ctx", lambda **_: present)
    monkeypatch.setattr(shares.session, "browser", lambda: present.name)
    return present


def burn(seconds: float) -> None:
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        pass


def test_all_that_is_computed_counts_once_and_other_visitors_are_free(
    visitor: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECONDS, "0.02")
    store = Recent[None](8, asked=True)

    def nested() -> None:
        store.get("inner", lambda: burn(0.015))

    store.get("outer", nested)
    (spent,) = shares.shares.of("one").spent
    assert spent[1] >= 0.015
    store.get("second", lambda: burn(0.01))
    with pytest.raises(LaterError, match="ask again in 60 s"):
        store.get("third", lambda: burn(0.01))
    store.get("outer", nested)
    Recent[None](8).get("free", lambda: None)
    visitor.name = "other"
    store.get("third", lambda: None)


@pytest.mark.usefixtures("visitor")
def test_the_tabs_of_one_visitor_compute_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    inside, most, lock = 0, 0, threading.Lock()
    gate = threading.Event()

    def compute() -> None:
        nonlocal inside, most
        with computing():
            with lock:
                inside += 1
                most = max(most, inside)
            gate.wait(0.02)
            with lock:
                inside -= 1

    tabs = [threading.Thread(target=compute) for _ in range(4)]
    for each in tabs:
        each.start()
    until(lambda: not any(each.is_alive() for each in tabs))
    assert most == 1


def test_a_local_server_counts_nothing(visitor: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HOSTED_VARIABLE)
    with computing():
        pass
    assert not shares.shares.of("one").spent
