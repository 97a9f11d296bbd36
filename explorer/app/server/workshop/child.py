"""The process that trains: the package's own command, at low priority, on one thread, on a control."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from transformer.training.control import GO_ON, PAUSE, STOP

ROOT = Path(__file__).resolve().parents[4]
SAID = "said.txt"
"""Standard error of the process."""
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Child:
    """A running `python -m transformer train`.

    It obeys what comes through a pipe that this server holds open. If the server ends, however it ends, the
    system closes the pipe, and the process stops after its present step.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(
        self,
        arguments: Sequence[str],  # the command, after ``python -m transformer``
        folder: Path,  # where it runs
        most_bytes: int,  # largest file that it may write
        nice: int = 15,  # how much it gives way to other processes, from 0 to 19
    ) -> None:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        environment = os.environ | dict.fromkeys(_THREADS, "1") | {"PYTHONPATH": path}
        with (folder / SAID).open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "transformer", *arguments, "--obey-input"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=said,
                cwd=folder,
                env=environment,
                process_group=0,
            )
        self.pid = self._process.pid
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self.pid, os.getpriority(os.PRIO_PROCESS, 0) + nice)
        _limit_files(self.pid, most_bytes)

    def pause(self) -> None:
        """Holds it after its present step; it keeps its memory."""
        self._say(PAUSE)

    def go_on(self) -> None:
        """Lets it continue."""
        self._say(GO_ON)

    def stop(self) -> None:
        """Asks it to save after its present step and to end."""
        self._say(STOP)

    def kill(self) -> None:
        """Ends it at once; its last checkpoint stays."""
        with suppress(OSError):
            self._process.kill()

    def wait(self, seconds: float) -> int | None:
        """Its exit status (negative: the signal that ended it); None if it still runs after some seconds."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        if self._process.stdin is not None:
            self._process.stdin.close()
        return status

    @property
    def resident(self) -> int:
        """Bytes of memory that it holds; 0 if the system does not say."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _say(self, line: bytes) -> None:
        with suppress(OSError, ValueError):  # it may have ended meanwhile
            assert self._process.stdin is not None
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()


def _limit_files(pid: int, most_bytes: int) -> None:
    """Lets the system refuse larger files, if it can."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most_bytes, most_bytes))


def last_words(folder: Path) -> str:
    """The last line that the process wrote, without bars of progress; empty if there is none."""
    with suppress(OSError):
        lines = (folder / SAID).read_text(encoding="utf-8", errors="replace").splitlines()
        told = [line.strip() for line in lines if line.strip() and "tokens/s" not in line]
        return told[-1][-300:] if told else ""
    return ""
