from __future__ import annotations

from pathlib import Path

import pytest

from explorer.app.server.uploads import read_upload
from transformer.text.pairs import DataError, ReadBounds


def test_a_server_without_room_says_so_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(DataError, match=r"^The server has no room to unpack the file; try again later\.$"):
        read_upload("pairs.tsv", b"one\teins\n", ReadBounds(total=100, line=100), lambda *_: None)
