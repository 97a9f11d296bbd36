"""What a hosted instance closes, bounds, counts and logs, and a local one does not; visits and
uploads."""

import asyncio
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

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
SESSION = "test session id"
"""The name that AppTest gives its session."""


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bounds are set, and nobody is here."""
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
    leave_page()


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
def test_what_is_too_long_is_not_taken_apart_and_opens_as_typed() -> None:
    source = models.find("en-pt")
    most = hosted.TIMES * 300
    text = "We like  music. " * (most // 16) + "So we do"
    too_long = text + "." * (most + 1 - len(text))
    assert examples.passage(source, State(text=too_long)) == ((too_long,), too_long)
    assert examples.whole(too_long) is None
    parts, first = examples.passage(source, State(text=too_long[1:]))
    assert (len(parts), first) == (most // 16 + 1, "e like music.")
    assert examples.whole(too_long[1:]) is not None


# --- visits and what they upload -----------------------------------------------------------------


def test_a_server_without_room_says_so_in_one_sentence() -> None:
    largest = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, largest[1]))
    try:
        with pytest.raises(
            DataError, match=r"^The server has no room to unpack the file; try again later\.$"
        ):
            read_upload("pairs.tsv", b"one\teins\n", lambda *_: None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, largest)


MIB = 2**20


def names(uploads: MemoryUploadedFileManager, session_id: str) -> list[str]:
    return [file.name for file in uploads.file_storage.get(session_id, {}).values()]


def send(uploads: MemoryUploadedFileManager, session_id: str, name: str, size: int = 1) -> None:
    file = UploadedFileRec(f"{session_id}/{name}", name, "text/plain", bytes(size))
    uploads.add_file(session_id, file)


def test_a_visit_keeps_its_newest_uploads_and_a_session_without_a_page_none() -> None:
    uploads = MemoryUploadedFileManager("/upload")
    for name in ("early", "bird"):
        send(uploads, "without a page", name)
        send(uploads, "a", name, 60 * MIB)
    visits.bound(uploads, {"a", "b"})
    assert [names(uploads, at) for at in ("without a page", "a")] == [[], ["bird"]]
    send(uploads, "without a page", "1")
    for name in "123456789":
        send(uploads, "b", name)
    assert [names(uploads, at) for at in ("without a page", "b")] == [[], [*"23456789"]]
    send(uploads, "b", "10", 64 * MIB)
    assert [names(uploads, at) for at in "ab"] == [["bird"], ["10"]]


def test_all_together_are_bounded_and_who_holds_most_loses_first() -> None:
    uploads = MemoryUploadedFileManager("/upload")
    visits.bound(uploads, {*"abcdef"})
    send(uploads, "a", "mine", 10 * MIB)
    for session_id in "bcde":
        send(uploads, session_id, "1", 40 * MIB)
    for session_id in "bc":
        send(uploads, session_id, "2", 20 * MIB)
    send(uploads, "f", "1", 50 * MIB)
    kept = {session_id: names(uploads, session_id) for session_id in "abcdef"}
    assert kept == {"a": ["mine"], "b": ["2"], "c": ["1", "2"], "d": ["1"], "e": ["1"], "f": ["1"]}


class Server:
    """Stands for Streamlit's own: says in turn whether a session has an open page."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.closed = list[str]()
        self.over = asyncio.Event()
        self.uploaded_file_mgr = MemoryUploadedFileManager("/upload")

    def is_active_session(self, session_id: str) -> bool:
        return self.answers.pop(0) if self.answers else True

    def close_session(self, session_id: str) -> None:
        self.closed.append(session_id)
        self.over.set()


def leave_page() -> None:
    """The session of AppTest is no longer here."""
    clear_session_resource_cache(SESSION)
    visits.VISITS.end(Server(), SESSION)


def test_a_visit_that_was_left_is_over_and_one_that_came_back_is_not() -> None:
    server = Server(False, True, False, False, True)

    async def visit() -> None:
        visitors = visits.Visits(seconds=0)
        visitors.enter(server, "a")
        visitors.leave(server, "a")
        visitors.leave(server, "a")
        await server.over.wait()

    asyncio.run(visit())
    assert (server.closed, server.answers) == (["a"], [True])


def test_a_visitor_too_many_is_told_so_in_a_sentence_and_who_is_here_stays(monkeypatch) -> None:
    server = Server()
    crowd = [*map(str, range(1_000))]
    for session_id in crowd:
        visits.VISITS.enter(server, session_id)
    assert run().text_input, "without hosted mode nobody is counted out"
    leave_page()
    for session_id in crowd[2:]:
        visits.VISITS.end(server, session_id)
    monkeypatch.setenv(HOSTED_VARIABLE, "on")
    monkeypatch.setenv(hosted.VISITORS, "2")
    at = run()
    sentence = "This server is full, as 2 visitors are here: come back later."
    assert ([info.value for info in at.info], [*at.text_input]) == ([sentence], [])
    visits.VISITS.end(server, "1")
    assert run().text_input
    with pytest.raises(visits.FullError):
        visits.VISITS.enter(server, "1")
    assert run().text_input
    visits.VISITS.end(server, "0")
