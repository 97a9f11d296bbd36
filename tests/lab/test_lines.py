from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.__main__ import main


def test_every_room_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.py").write_text("def f():\n    return 1\n")
    (tmp_path / "a" / "d.py").write_text("x = 1\n\n")
    for command in (["git", "init", "-q"], ["git", "add", "."]):
        subprocess.run(command, cwd=tmp_path, check=True)
    assert main(["lines", "--tree", str(tmp_path)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [["a", "4", "2", "250"], ["a/b", "2", "1", "500"], ["all", "4", "2", "250"]]
