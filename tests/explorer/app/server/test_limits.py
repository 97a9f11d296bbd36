"""Limits and the switch, as the environment says."""

from __future__ import annotations

import pytest

from explorer.app.server.hosted import DISK, HOSTED, MEMORY, MINUTES, NICE, SWITCH, Limits, closed


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (SWITCH, MINUTES, MEMORY, DISK, NICE, *HOSTED):
        monkeypatch.delenv(name, raising=False)


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
