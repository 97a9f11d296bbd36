"""The start command of the README, as written, in an empty home on a desktop."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from waiting import until
from websockets.sync.client import connect

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 90


def start_command() -> str:
    """What the README says under "Start", from `streamlit` on; what comes before installs it."""
    written = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"## Start\n.*?```bash\n(.*?)\n```", written, re.DOTALL)
    assert block is not None
    last = block[1].split("&&")[-1].strip()
    assert last.startswith("streamlit run")
    return last


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_start_command_serves_the_app_and_asks_for_nothing(tmp_path: Path, port: int):
    home = tmp_path / "home"
    home.mkdir()
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("STREAMLIT_", "XDG_"))
    }
    variables = kept | {
        "HOME": str(home),
        "DISPLAY": ":99",
        "BROWSER": "true",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}",
        "STREAMLIT_SERVER_PORT": str(port),
    }
    printed = (tmp_path / "printed").open("wb+")
    # A terminal that nobody types into: a question would wait for ever.
    reads, writes = os.pipe()
    server = subprocess.Popen(
        shlex.split(start_command()),
        cwd=ROOT,
        env=variables,
        stdin=reads,
        stdout=printed,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        until(lambda: server.poll() is not None or healthy(port), PATIENCE)
        assert server.poll() is None
        told = (tmp_path / "printed").read_text()
        assert "URL:" in told
        assert "mail" not in told.lower()
        assert not list(home.rglob("credentials.toml"))
        with connect(f"ws://127.0.0.1:{port}/_stcore/stream") as link:
            assert [extension.name for extension in link.protocol.extensions] == [
                "permessage-deflate"
            ]
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=PATIENCE)
        printed.close()
        os.close(reads)
        os.close(writes)


def healthy(port: int) -> bool:
    """Whether the server answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5) as answer:
            return bool(answer.read() == b"ok")
    except OSError:
        return False
