"""What a hosted instance closes, bounds, counts and logs, and a local one does not; visits and
uploads."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from app_pages import run
from streamlit.runtime.caching import clear_session_resource_cache
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from explorer.app.address import State
from explorer.app.server import examples, hosted, hub_models, models, visits
from explorer.app.server.hosted import (
    DISK,
    DRAWS,
    HYPOTHESES,
    MEMORY,
    MINUTES,
    NICE,
    SWITCH,
    Bounds,
)
from explorer.app.server.pairs import read_upload
from transformer.hub.settings import ALLOWED_VARIABLE, HOSTED_VARIABLE, Hub
from transformer.text.pairs import DataError

ROOT = Path(__file__).parents[4]
LONG = "one " * 200


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bounds are set, no other visits are counted, and those of a test are forgotten."""
    for name in (
        HOSTED_VARIABLE,
        *hosted.KNOWN,
        *hosted.HOSTED,
        SWITCH,
        MINUTES,
        MEMORY,
        DISK,
        NICE,
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(visits, "_visits", set())
    monkeypatch.setattr(visits, "_watched", set())
    clear_session_resource_cache("test session id")  # the name that AppTest gives its session


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTED_VARIABLE, "on")


@pytest.mark.parametrize("value", ["", "off", "No", "0"])
def test_a_local_start_is_bounded_by_nothing(value: str, monkeypatch, capsys) -> None:
    if value:
        monkeypatch.setenv(HOSTED_VARIABLE, value)
    assert Bounds.from_environment() == Bounds()
    hosted.check(LONG * 100, None)
    hosted.check(decode="beam-8")
    hosted.check(draws=16)
    hosted.log("page", page="app")
    assert hosted.closed() is None
    assert Hub.from_environment().allowed is None
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("value", ["on", "YES", "perhaps"])
def test_one_variable_closes_the_hub_and_training_and_the_operator_may_open_them(
    value, monkeypatch
):
    monkeypatch.setenv(HOSTED_VARIABLE, value)
    assert HOSTED_VARIABLE in (hosted.closed() or "")
    assert ALLOWED_VARIABLE in (hub_models.closed() or "")
    monkeypatch.setenv(SWITCH, "on")
    assert hosted.closed() is None
    assert not Hub.from_environment().allows("some/model")
    monkeypatch.setenv(ALLOWED_VARIABLE, "some/*")
    assert [Hub.from_environment().allows(name) for name in ("some/model", "other/model")] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("name", "value", "opens"),
    [
        *((name, "", "on") for name in hosted.HOSTED),
        *((SWITCH, value, "yes") for value in ("off", "OFF", " no ", "0", "perhaps")),
    ],
)
def test_training_is_closed_where_others_may_come_or_the_switch_is_not_on(
    name, value, opens, monkeypatch
):
    monkeypatch.setenv(name, value)
    assert name in (hosted.closed() or "")
    monkeypatch.setenv(SWITCH, opens)
    assert hosted.closed() is None


PER_MINUTE = f"{HOSTED_VARIABLE}_PER_MINUTE"


@pytest.mark.usefixtures("on")
@pytest.mark.parametrize(
    ("variables", "bounds"),
    [
        ({}, Bounds(300, 4, 8, 100)),
        (
            {hosted.CHARACTERS: "80", HYPOTHESES: "6", DRAWS: "2", hosted.VISITORS: "7"},
            Bounds(80, 6, 2, 7),
        ),
        ({HYPOTHESES: "99", DRAWS: "99"}, Bounds(300, Bounds().beam, Bounds().draws, 100)),
        ({hosted.CHARACTERS: "many"}, hosted.CHARACTERS),
        ({PER_MINUTE: "20"}, f"{PER_MINUTE} sets nothing; .*_VISITORS"),
    ],
)
def test_the_environment_sets_the_bounds(variables, bounds, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if isinstance(bounds, Bounds):
        assert Bounds.from_environment() == bounds
    else:
        with pytest.raises(ValueError, match=bounds):
            Bounds.from_environment()


@pytest.mark.usefixtures("on")
def test_what_is_too_large_is_refused_in_a_sentence_and_logged(capsys) -> None:
    hosted.check("short", None)
    hosted.check(decode="beam-4")
    hosted.check(draws=8)
    for reason, check in (
        ("length", lambda: hosted.check("short", LONG)),
        ("beam", lambda: hosted.check(decode="beam-5")),
        ("draws", lambda: hosted.check(draws=9)),
    ):
        with pytest.raises(ValueError, match=r"[Tt]his server"):
            check()
        assert json.loads(capsys.readouterr().out)["why"] == reason


def test_the_environment_sets_the_limits_of_training_and_a_senseless_one_is_refused_by_its_name(
    monkeypatch,
):
    assert hosted.Limits.from_environment() == hosted.Limits()
    good = {MINUTES: "0.5", MEMORY: "700", DISK: "2e2", NICE: "3"}
    for name, value in good.items():
        monkeypatch.setenv(name, value)
    assert hosted.Limits.from_environment() == hosted.Limits(0.5, 700, 200, 3)
    bad = [(name, value) for name in good for value in ("-1", "nan", "inf", "many", "²", "1e308")]
    for name, value in (*bad, (MINUTES, "0"), (NICE, "20")):
        monkeypatch.setenv(name, value)
        with pytest.raises(ValueError, match=f"{name} is"):
            pytest.fail(f"{name}={value}: {hosted.Limits.from_environment()}")
        monkeypatch.setenv(name, good[name])


WRITES = """
import os, sys, tempfile
allowed = (os.path.realpath(tempfile.gettempdir()), "/dev/", "/proc/")
def hears(event, given):
    if event != "open" or not all(isinstance(each, str) for each in given[:2]):
        return
    path = os.path.realpath(given[0])
    if set(given[1]) & set("wax+") and not path.startswith(allowed):
        print("WROTE", path)
sys.addaudithook(hears)
from streamlit.testing.v1 import AppTest
for page in ("app.py", "pages/beam_search.py", "pages/what_if.py", "pages/training.py"):
    at = AppTest.from_file("app.py", default_timeout=120)
    at.query_params["model"], at.query_params["text"] = "en-pt", "We like new music."
    at.query_params["changes"] = "ablate_cross_1_2"
    if page != "app.py":
        at.switch_page(page)
    at.run()
    print("RAN", page, [each.value for each in at.exception])
"""
"""Opens pages, and names every file that they open for writing outside the temporary folder."""


def test_a_hosted_server_writes_nothing_outside_the_temporary_folder(tmp_path: Path) -> None:
    own = {HOSTED_VARIABLE: "on", "PYTHONDONTWRITEBYTECODE": "1"}
    own |= dict.fromkeys(("HOME", "TMPDIR"), str(tmp_path))
    command = [sys.executable, "-c", WRITES]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("RAN") == 4, done.stderr
    assert "WROTE" not in done.stdout, done.stdout


@pytest.mark.usefixtures("on")
def test_what_is_too_long_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound comes before the splitter, which every page asks, several times a run."""
    read = list[str]()
    monkeypatch.setattr(examples, "clean", lambda text: read.append(text) or text)
    too_long = "." * (hosted.TIMES * 300 + 1)
    source = models.find("en-pt")
    assert examples.passage(source, State(text=too_long)) == ((too_long,), too_long)
    assert examples.whole(too_long) is None
    assert not read
    examples.passage(source, State(text=too_long[1:]))
    assert read == [too_long[1:]]


# --- visits and what they upload -----------------------------------------------------------------


def test_a_server_without_room_says_so_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(
        DataError, match=r"^The server has no room to unpack the file; try again later\.$"
    ):
        read_upload("pairs.tsv", b"one\teins\n", lambda *_: None)


def names(uploads: MemoryUploadedFileManager, at: str) -> list[str]:
    return [each.name for each in uploads.file_storage.get(at, {}).values()]


def send(uploads: MemoryUploadedFileManager, at: str, name: str, size: int = 1) -> None:
    uploads.add_file(at, UploadedFileRec(f"{at}/{name}", name, "text/plain", bytes(size)))


def test_a_visit_keeps_its_newest_uploads_and_a_session_without_a_page_none(monkeypatch) -> None:
    monkeypatch.setattr(visits, "MOST_BYTES", 100)
    monkeypatch.setattr(visits, "MOST_FILES", 3)
    uploads = MemoryUploadedFileManager("/upload")
    here = {"a", "b"}
    for name in ("early", "bird"):
        send(uploads, "without a page", name)
        send(uploads, "a", name, 90)
    visits.bound(uploads, here)
    assert [names(uploads, at) for at in ("without a page", "a")] == [[], ["bird"]]
    send(uploads, "without a page", "1")
    for name in "1234":
        send(uploads, "b", name)
    assert [names(uploads, at) for at in ("without a page", "b")] == [[], ["2", "3", "4"]]
    send(uploads, "b", "5", 100)
    assert [names(uploads, at) for at in "ab"] == [["bird"], ["5"]]


def test_all_together_are_bounded_and_who_holds_most_loses_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visits, "MOST_TOGETHER", 100)
    uploads = MemoryUploadedFileManager("/upload")
    visits.bound(uploads, {"a", "b", "c"})
    send(uploads, "a", "mine", 10)
    for at, name in (("b", "1"), ("b", "2"), ("c", "1"), ("c", "2")):
        send(uploads, at, name, 25)
    assert names(uploads, "a") == ["mine"]
    assert len(names(uploads, "b")) + len(names(uploads, "c")) == 3


class Server:
    """Stands for Streamlit's own; knows which sessions have an open page."""

    def __init__(self, *active: str) -> None:
        self.active = set(active)
        self.closed = list[str]()
        self.uploaded_file_mgr = MemoryUploadedFileManager("/upload")

    def is_active_session(self, at: str) -> bool:
        return at in self.active

    def close_session(self, at: str) -> None:
        self.closed.append(at)


class Clock:
    """Stands for an event loop: calls are made by hand, one after the other."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def call_later(self, seconds: float, call: Callable[..., None], *arguments: Any) -> None:
        assert seconds == visits.LOOK
        self.calls.append((call, arguments))

    def tick(self) -> None:
        call, arguments = self.calls.pop()
        call(*arguments)


def test_a_visit_that_was_left_is_over_and_one_that_came_back_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server("a")
    clock = Clock()
    monkeypatch.setattr(visits.runtime, "exists", lambda: True)
    monkeypatch.setattr(visits.runtime, "get_instance", lambda: server)
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: clock)
    monkeypatch.setattr(visits, "get_script_run_ctx", lambda: type("At", (), {"session_id": "a"}))
    monkeypatch.setattr(visits, "_visit", visits._visit.__wrapped__)
    leave = visits._visit("a")
    server.active.clear()
    leave()
    leave()
    assert len(clock.calls) == 1
    clock.tick()
    server.active.add("a")
    clock.tick()
    server.active.clear()
    clock.tick()
    assert server.closed == []
    clock.tick()
    assert (server.closed, clock.calls) == (["a"], [])


def test_a_visitor_too_many_is_told_so_in_a_sentence_and_who_is_here_stays(monkeypatch) -> None:
    visits._visits.update(map(str, range(1_000)))
    assert run().text_input, "without hosted mode nobody is counted out"
    monkeypatch.setenv(HOSTED_VARIABLE, "on")
    monkeypatch.setenv(hosted.VISITORS, "2")
    clear_session_resource_cache("test session id")
    visits._visits.clear()
    visits._visits.update({"one", "two"})  # AppTest's server takes every session for an active one
    at = run()
    said = "This server is full, as 2 visitors are here: come back later."
    assert ([each.value for each in at.info], [*at.text_input]) == ([said], [])
    visits._visits.remove("two")
    assert run().text_input
    visits._visits.add("two")
    assert run().text_input
