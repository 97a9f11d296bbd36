"""Numbers for Prometheus: they follow what happens, at an address of their own, and only if asked for."""

from __future__ import annotations

import socket
import sys
from urllib.request import urlopen

import pytest
from app_pages import run, taken
from prometheus_client.parser import text_string_to_metric_families
from streamlit.runtime.caching import clear_session_resource_cache

from transformer.hub.settings import HOSTED_VARIABLE
from ui.server.hosting.bounds import DRAWS
from ui.server.hosting.hosted import METRICS, log

TEXT = "three two one two"
SESSION = "test session id"
"""The name that AppTest gives its session."""


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """A free port, named in the environment of a hosted instance."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    monkeypatch.setenv(HOSTED_VARIABLE, "on")
    monkeypatch.setenv(METRICS, str(port))
    return port


def read(port: int) -> dict[tuple[str, ...], float]:
    """The numbers shown at a port, by name and labels."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    assert TEXT not in text
    families = text_string_to_metric_families(text)
    return {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}


def test_the_numbers_follow_what_visitors_do(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DRAWS, "1")
    clear_session_resource_cache(SESSION)
    run(text=TEXT)
    at = run("pages/beam_search.py", text=TEXT, view="sampling", draws="4")
    assert not at.exception
    log("translated", model="named by a visitor", tokens=1, ms=300)
    found = read(port)
    assert found["explorer_page_runs_total", "app"] == 1
    assert found["explorer_page_runs_total", "beam_search"] >= 1
    assert found["explorer_refused_total", "draws"] >= 1
    assert found["explorer_translation_seconds_count", "en-pt"] == 1
    assert found["explorer_translation_seconds_sum", "other"] == 0.3
    assert found["explorer_sessions",] == 2  # each AppTest is a visitor
    assert found["explorer_models",] >= 1
    assert found["explorer_store_values", "translations"] >= 1
    assert found["explorer_store_bytes", "translations"] > 0
    assert found["process_open_fds",] > 0
    assert found["explorer_work", "running"] == 0
    with taken():
        assert read(port)["explorer_work", "running"] == 2
    clear_session_resource_cache(SESSION)
    assert read(port)["explorer_sessions",] == 0
    run(text=TEXT)
    assert read(port)["explorer_page_runs_total", "app"] == 2


def test_nothing_listens_unless_asked_for(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(METRICS)
    run(text=TEXT)
    with pytest.raises(OSError, match="refused"):
        read(port)


@pytest.mark.parametrize("place", ["", "nowhere", "70000", "203.0.113.1:9464"])
def test_a_place_that_cannot_be_had_is_one_sentence_and_the_app_still_runs(
    place: str, port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        monkeypatch.setenv(METRICS, place or str(port))
        for _ in range(2):
            at = run(text=TEXT)
            assert not at.exception
    told = [line for line in capsys.readouterr().err.splitlines() if METRICS in line]
    assert len(told) == 1
    assert "the metrics are not shown: " in told[0]


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is no address of this machine")
def test_an_address_may_be_named(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(METRICS, f"127.0.0.2:{port}")
    run(text=TEXT)
    with urlopen(f"http://127.0.0.2:{port}/metrics", timeout=20) as answer:
        assert answer.status == 200
    with pytest.raises(OSError, match="refused"):
        read(port)
