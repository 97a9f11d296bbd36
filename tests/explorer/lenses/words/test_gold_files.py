from __future__ import annotations

from pathlib import Path

import pytest

from explorer.lenses.words.links import GoldPair, read_gold
from transformer.text.pairs import DataError


def test_sure_and_possible_links_are_read(tmp_path: Path) -> None:
    (tmp_path / "gold.tsv").write_text("a b c\tx y\t0-0 2p1\n", encoding="utf-8")
    assert read_gold(tmp_path / "gold.tsv") == [
        GoldPair(("a", "b", "c"), ("x", "y"), frozenset({(0, 0)}), frozenset({(0, 0), (2, 1)}))
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a\tb", "found 2 columns"),
        ("a\tb\t0:0", "'0:0' is not a link"),
        ("a\tb\t0-1", "points outside the sentence"),
        ("\tb\t0-0", "source is empty"),
    ],
)
def test_a_bad_gold_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "gold.tsv").write_text(f"a b\tc\t1-0\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"gold\.tsv:2: .*{message}"):
        read_gold(tmp_path / "gold.tsv")
