from __future__ import annotations

import gzip
from collections import deque
from pathlib import Path

import pytest
from corpus import write_pairs

from transformer.text.pairs import DataError, ReadBounds, SentencePair, read_lines, read_pairs


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.tsv.gz"])
def test_plain_and_gzipped_files_read_alike(tmp_path: Path, name: str) -> None:
    path = write_pairs(tmp_path / name, [("a b", "c"), ("Käse 😀", "x y")])
    assert read_pairs(path) == [SentencePair("a b", "c"), SentencePair("Käse 😀", "x y")]


def test_windows_line_ends_and_a_byte_order_mark_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"\xef\xbb\xbfa\tb\r\nc\td\r\n")
    assert read_pairs(tmp_path / "a.tsv") == [SentencePair("a", "b"), SentencePair("c", "d")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\nonly one\n", r"a\.tsv:2: .*found 1 column\."),
        (b"a\tb\tc\n", r"a\.tsv:1: .*found 3 columns\."),
        (b"a\tb\n\na\n", r"a\.tsv:3: .*found 1 column\."),
        (b"a\tb\n \tb\n", r"a\.tsv:2: the source is empty"),
        (b"a\t\n", r"a\.tsv:1: the target is empty"),
        (b"a\tb\na\t\xff\n", r"a\.tsv:2: .*not UTF-8"),
        (b"", r"a\.tsv: the file is empty"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.tsv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_pairs(tmp_path / "a.tsv")


def test_blank_lines_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\n\n \nc\td\n\n\n", encoding="utf-8")
    pairs = read_pairs(tmp_path / "a.tsv")
    assert pairs == [SentencePair("a", "b"), SentencePair("c", "d")]
    assert [pair.line for pair in pairs] == [1, 4]


@pytest.mark.parametrize(
    "content", [b"no gzip", gzip.compress(b"a\tb\n" * 1000, mtime=0)[:30]], ids=["no gzip", "cut"]
)
def test_a_damaged_gzip_file_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(content)
    with pytest.raises(DataError, match="gzip file is damaged"):
        read_pairs(tmp_path / "a.tsv.gz")


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_pairs(tmp_path / "none.tsv")


@pytest.mark.parametrize(
    ("content", "most", "message"),
    [
        (b"a\tb\n" * 1_500_000, 10**6, "unpacks to more than 1 MiB"),
        (b"a" * 50_000_000, 10**6, r"pairs\.tsv\.gz:1: this line has more than 1 KiB"),
        (b"a\tb\n" * 20_000, 10_000, "more than 10,000 lines"),
    ],
    ids=["total", "line", "lines"],
)
def test_a_packed_file_is_read_up_to_its_bounds_only(
    tmp_path: Path, content: bytes, most: int, message: str
) -> None:
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress(content))
    lines = read_lines(path, ReadBounds(total=2**20, line=2**10, lines=most))
    with pytest.raises(DataError, match=message):
        deque(lines, maxlen=0)


def test_a_file_at_its_bounds_is_read(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_bytes(b"a\tb\n" * 3)
    assert len(list(read_lines(tmp_path / "pairs.tsv", ReadBounds(total=12, line=4, lines=3)))) == 3
