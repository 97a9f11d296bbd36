"""Limits and the switch, as the environment says."""

from __future__ import annotations

import pytest

from ui.server.here.limits import DISK, HOSTED, MEMORY, MINUTES, SWITCH, Limits, closed


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (SWITCH, MINUTES, MEMORY, DISK, *HOSTED):
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
    for name, value in ((MINUTES, "0.5"), (MEMORY, "700"), (DISK, "2e2")):
        monkeypatch.setenv(name, value)
    assert Limits.from_environment() == Limits(0.5, 700, 200)


@pytest.mark.parametrize("name", [MINUTES, MEMORY, DISK])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "many"])
def test_a_senseless_limit_is_refused_by_its_name(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"{name} is"):
        Limits.from_environment()
