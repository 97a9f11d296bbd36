"""Files of Firefox that are damaged: one sentence each, and no memory for what they claim."""

from __future__ import annotations

import random
import struct
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from firefox_files import CONFIG, content, packed, random_model

from transformer.families.firefox.items import FLOAT32, INT8, TEXT, Items
from transformer.storage.files import CheckpointError

VECTOR = np.arange(6, dtype=np.float32)


def small():
    whole = np.arange(-3, 3, dtype=np.int8).reshape(2, 3)  # stored as (outputs, inputs)
    return [
        ("vector", FLOAT32, (1, 6), VECTOR.tobytes()),
        ("matrix", INT8, (3, 2), whole.tobytes() + np.float32(2).tobytes() + bytes(10)),
        ("said", TEXT, (6,), b"a: b\n\0"),
    ]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.bin"


def read(path, data):
    path.write_bytes(data)
    items = Items(path)
    for name, item in items.found.items():
        items.text(name) if item.type == TEXT else items.numbers(name)


def refused(path, data):
    with pytest.raises(CheckpointError) as caught:
        read(path, data)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_items_are_read_as_they_were_written(path):
    path.write_bytes(packed(small()))
    items = Items(path)
    np.testing.assert_array_equal(items.numbers("vector"), VECTOR[None])
    np.testing.assert_array_equal(items.numbers("matrix"), np.arange(-3, 3).reshape(2, 3).T / 2)
    np.testing.assert_array_equal(
        items.numbers("matrix", rows_are_outputs=False), np.arange(-3, 3).reshape(3, 2) / 2
    )
    assert items.text("said") == "a: b\n"


def test_a_file_cut_off_anywhere_is_refused(path):
    data = packed(small())
    for length in range(0, len(data) - 20, max(1, len(data) // 40)):
        refused(path, data[:length])


@pytest.mark.parametrize("place", range(0, 16 + 3 * 32, 8))
@pytest.mark.parametrize("value", [2**63, 2**32 + 5])
def test_huge_numbers_in_the_table_are_refused(path, place, value):
    data = packed(small())
    refused(path, data[:place] + struct.pack("<Q", value) + data[place + 8 :])


@pytest.mark.parametrize(
    "change",
    [
        lambda items: [*items, items[0]],
        lambda items: [("vector", FLOAT32, (1, 7), VECTOR.tobytes())],
        lambda items: [("vector", FLOAT32, (-1, -6), VECTOR.tobytes())],
        lambda items: [("vector", FLOAT32, (0, 6), b"")],
        lambda items: [("vector", FLOAT32, (2**30, 2**30), VECTOR.tobytes())],
        lambda items: [("vector", FLOAT32, (1, 6), (VECTOR * np.nan).tobytes())],
        lambda items: [("vector", FLOAT32, (1, 1, 1, 1, 6), VECTOR.tobytes())],
        lambda items: [("vector", 0x0808, (1, 6), VECTOR.tobytes())],
        lambda items: [("matrix", INT8, (3, 2), bytes(6) + np.float32(0).tobytes())],
        lambda items: [("matrix", INT8, (3, 2), bytes(6) + np.float32(np.inf).tobytes())],
        lambda items: [("matrix", INT8, (3, 2), bytes(9))],
        lambda items: [("said", TEXT, (3,), b"\xff\xfe\xfd")],
        lambda items: [("n" * 2000, TEXT, (1,), b"a")],
    ],
)
def test_items_that_cannot_be_are_refused(path, change):
    refused(path, packed(change(small())))


def test_another_version_and_no_file_are_refused(path):
    refused(path, packed(small(), version=2))
    refused(path, b"")
    with pytest.raises(CheckpointError, match="cannot be read"):
        Items(path.with_name("none.bin"))


def test_flipped_bits_never_raise_anything_else(path):
    data = packed(content(random_model(replace(CONFIG, n_encoder_layers=1))))
    order = random.Random(0)
    for _ in range(60):
        spoilt = bytearray(data)
        spoilt[order.randrange(12_000)] ^= 1 << order.randrange(8)
        with suppress(CheckpointError):
            read(path, bytes(spoilt))
