"""A hosted instance: what it closes, bounds, counts and logs, and that a local one does none of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.app.server import hosted, hub_models
from explorer.app.server.hosted import (
    CHARACTERS,
    DISK,
    DRAWS,
    HOSTED,
    HYPOTHESES,
    MEMORY,
    MINUTES,
    NICE,
    SWITCH,
    Bounds,
    Limits,
    closed,
)
from transformer.hub.settings import ALLOWED_VARIABLE, HOSTED_VARIABLE, Hub

ROOT = Path(__file__).parents[4]
LONG = "one " * 200
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


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        HOSTED_VARIABLE,
        CHARACTERS,
        HYPOTHESES,
        DRAWS,
        *HOSTED,
        SWITCH,
        MINUTES,
        MEMORY,
        DISK,
        NICE,
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTED_VARIABLE, "on")


@pytest.mark.parametrize("value", [None, "", "off", "No", "0"])
def test_a_local_start_is_bounded_by_nothing(
    value: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if value is not None:
        monkeypatch.setenv(HOSTED_VARIABLE, value)
    assert Bounds.from_environment() == Bounds()
    hosted.check_texts(LONG * 100, None)
    hosted.check_search("beam-8")
    hosted.check_draws(16)
    hosted.log("page", page="app")
    assert closed() is None
    assert Hub.from_environment().allowed is None
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("value", ["on", "YES", "perhaps"])
def test_one_variable_closes_the_hub_and_training(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTED_VARIABLE, value)
    assert HOSTED_VARIABLE in (closed() or "")
    assert ALLOWED_VARIABLE in (hub_models.closed() or "")
    assert not hub_models.is_allowed("some/model")


@pytest.mark.usefixtures("on")
def test_what_the_operator_allows_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "on")
    monkeypatch.setenv(ALLOWED_VARIABLE, "some/*")
    assert closed() is None
    assert hub_models.is_allowed("some/model")
    assert not hub_models.is_allowed("other/model")


@pytest.mark.usefixtures("on")
def test_the_environment_sets_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Bounds.from_environment() == Bounds(300, 4, 8, 100)
    for name, value in ((CHARACTERS, "80"), (HYPOTHESES, "6"), (DRAWS, "2")):
        monkeypatch.setenv(name, value)
    assert Bounds.from_environment() == Bounds(80, 6, 2, 100)
    monkeypatch.setenv(HYPOTHESES, "99")
    assert Bounds.from_environment().beam == Bounds().beam
    monkeypatch.setenv(CHARACTERS, "many")
    with pytest.raises(ValueError, match=CHARACTERS):
        Bounds.from_environment()
    monkeypatch.delenv(CHARACTERS)
    monkeypatch.setenv(old := f"{HOSTED_VARIABLE}_PER_MINUTE", "20")
    with pytest.raises(ValueError, match=f"{old} sets nothing; .*_VISITORS"):
        Bounds.from_environment()


@pytest.mark.usefixtures("on")
def test_what_is_too_large_is_refused_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    hosted.check_texts("short", None)
    for refused, check in (
        ("length", lambda: hosted.check_texts("short", LONG)),
        ("beam", lambda: hosted.check_search("beam-5")),
        ("draws", lambda: hosted.check_draws(9)),
    ):
        with pytest.raises(ValueError, match=r"[Tt]his server"):
            check()
        assert json.loads(capsys.readouterr().out)["why"] == refused


def test_a_hosted_server_writes_nothing_outside_the_temporary_folder(tmp_path: Path) -> None:
    own = {
        HOSTED_VARIABLE: "on",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", WRITES],
        cwd=ROOT,
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("RAN") == 4, done.stderr
    assert "WROTE" not in done.stdout, done.stdout


def test_a_local_start_may_train() -> None:
    assert closed() is None


@pytest.mark.parametrize("name", HOSTED)
def test_a_hosted_instance_may_not_unless_it_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "")
    assert name in (closed() or "")
    monkeypatch.setenv(SWITCH, "on")
    assert closed() is None


@pytest.mark.parametrize("value", ["off", "OFF", " no ", "0", "perhaps"])
def test_the_switch_switches_off_and_a_strange_value_too(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, value)
    assert SWITCH in (closed() or "")


def test_the_environment_sets_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Limits.from_environment() == Limits()
    for name, value in ((MINUTES, "0.5"), (MEMORY, "700"), (DISK, "2e2"), (NICE, "3")):
        monkeypatch.setenv(name, value)
    assert Limits.from_environment() == Limits(0.5, 700, 200, 3)


@pytest.mark.parametrize("name", [MINUTES, MEMORY, DISK, NICE])
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "many", "²", "1e308"])
def test_a_senseless_limit_is_refused_by_its_name(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"{name} is"):
        Limits.from_environment()


def test_no_time_at_all_and_no_such_priority_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ((MINUTES, "0"), (NICE, "20")):
        monkeypatch.setenv(name, value)
        with pytest.raises(ValueError, match=f"{name} is"):
            Limits.from_environment()
        monkeypatch.delenv(name)
