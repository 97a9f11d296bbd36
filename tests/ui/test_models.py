"""The app's stores: bounded by number and by bytes."""

from __future__ import annotations

import pytest

from transformer import Capture
from ui import imported, stores
from ui.stores import Recent, held
from ui.take_home import trace_file


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
    assert plain.attention.nbytes < held(plain) < held(full)
    assert held(translator.translate("one", capture=False)) == 0


def test_a_file_that_holds_too_much_for_a_visit_is_refused(translator, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(imported, "LARGEST", 1000)
    with pytest.raises(ValueError, match="most kept for a visit"):
        imported.open_file("run.npz", trace_file(translator.translate("one two"), None))
