"""The app's stores: bounded by number and by bytes."""

from __future__ import annotations

import pytest

from explorer.app.maps.run_export import trace_file
from explorer.app.server import imported, memory, stores
from explorer.app.server.stores import NoRoomError, Recent, Residents, bytes_of
from transformer import Capture


def test_a_store_keeps_the_values_used_last():
    store = Recent[str](2)
    for key in ("a", "b", "a", "c"):
        assert store.get(key, lambda key=key: key.upper()) == key.upper()
    assert [key in store for key in "abc"] == [True, False, True]


def test_a_store_is_bounded_by_bytes_but_keeps_the_newest(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stores, "MOST_BYTES", 100)
    store = Recent[bytes](10, len)
    for key, size in (("a", 40), ("b", 40), ("c", 40), ("d", 500)):
        store.get(key, lambda size=size: bytes(size))
    assert [key in store for key in "abcd"] == [False, False, False, True]
    store.get("e", lambda: bytes(60))
    assert "d" not in store


def test_what_a_translation_holds_counts_the_residual_stream_too(translator):
    plain = translator.translate("one two three")
    full = translator.translate("one two three", capture=Capture(residual=True))
    assert plain.attention.nbytes < bytes_of(plain) < bytes_of(full)
    assert bytes_of(translator.translate("one", capture=False)) == 0


def test_a_file_that_holds_too_much_for_a_visit_is_refused(translator, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(imported, "LARGEST", 1000)
    with pytest.raises(ValueError, match="the limit for one visit"):
        imported.open_file("run.npz", trace_file(translator.translate("one two"), None))


class Model:
    """Stands in for a translator: can be counted, and found while somebody holds it."""


def resident(residents: Residents, name: str, needed: int = 0) -> Model:
    return residents.get((name, name, 0), needed, Model)


def names(residents: Residents, *asked: str) -> list[str]:
    return [name for name in asked if (name, name, 0) in residents]


def test_the_model_used_longest_ago_leaves_with_all_that_was_made_with_it():
    residents, store = Residents(2), Recent[str](10)
    for name in ("a", "b"):
        resident(residents, name)
        store.get((name, 1), lambda: "made")
    resident(residents, "a")
    resident(residents, "c")
    assert names(residents, "a", "b", "c") == ["a", "c"]
    assert [(name, 1) in store for name in "ab"] == [True, False]


def test_a_model_in_use_is_never_loaded_twice_and_leaves_only_after_its_use():
    residents = Residents(1)
    used = resident(residents, "a")
    resident(residents, "b")
    assert names(residents, "a", "b") == ["a", "b"]
    assert resident(residents, "a") is used
    del used
    resident(residents, "b")
    assert names(residents, "a", "b") == ["b"]


def test_models_leave_where_memory_is_short_and_one_that_never_fits_is_refused(
    monkeypatch: pytest.MonkeyPatch,
):
    residents = Residents(4)
    monkeypatch.setattr(memory, "available", lambda: 100 - 60 * len(names(residents, "a", "b")))
    resident(residents, "a", 60)
    resident(residents, "b", 60)
    assert names(residents, "a", "b") == ["b"]
    with pytest.raises(NoRoomError, match="c needs 200 bytes of memory, but only 100 bytes is free"):
        resident(residents, "c", 200)
    assert names(residents, "a", "b", "c") == []


def test_free_memory_is_what_the_machine_and_the_container_leave(tmp_path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   2000 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    assert memory.available() == 2_048_000
    for name, text in {
        "max": "1000000",
        "current": "700000",
        "stat": "anon 5\ninactive_file 100000\n",
    }.items():
        (tmp_path / f"memory.{name}").write_text(text)
    assert memory.available() == 400_000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available() == 2_048_000
    (tmp_path / "meminfo").unlink()
    assert memory.available() == memory.UNKNOWN
