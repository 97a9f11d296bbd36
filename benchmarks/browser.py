"""The app as a process, Chromium at it, nginx before it, and clocks that run inside the browser."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from benchmarks.package import memory
from benchmarks.timing import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, WebSocket

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update"]
READY = "document.querySelector('.lv')?.dataset.ready === 'true'"
RESTS = "document.querySelector('.stApp')?.dataset.testScriptState === 'notRunning'"
BARE, BARE_READY = (
    "benchmarks/bare_page.py",
    "document.querySelectorAll('.heatmaplayer image').length >= 3",
)
WATCH = """([event, condition]) => {
  window.took = null;
  document.addEventListener(event, () => {
    const start = performance.now(), done = new Function(`return ${condition}`);
    const look = () => { if (done()) window.took = performance.now() - start; else frame(); };
    const frame = () => requestAnimationFrame(() => setTimeout(look));
    frame();
  }, { once: true, capture: true });
}"""
HEADER = ((126, 2), (2**16, 4))
"""Bytes of a frame's header, below so many bytes of content; 10 above."""
_COMPILED = tempfile.TemporaryDirectory()


@dataclass(frozen=True)
class Served:
    """A running server."""

    url: str
    pids: tuple[int, ...]  # its processes

    def memory(self) -> float:
        """MB that its processes hold."""
        return sum(memory("VmRSS", pid) for pid in self.pids)

    def processor(self) -> float:
        """Seconds of processor time that its processes have used."""
        fields = [
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids
        ]
        return sum(int(field[11]) + int(field[12]) for field in fields) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(
    script: str = "app.py",
    *arguments: str,
    log: int | IO[str] = subprocess.DEVNULL,  # where it writes
    **variables: str,  # of its environment
) -> Iterator[Served]:
    """Runs a Streamlit script until it answers; all modules are compiled, as from the second start
    on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    compiled = {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": _COMPILED.name,
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.headless", "true"]
    command += ["--server.port", str(port), "--server.address", "127.0.0.1", "--", *arguments]
    running = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | compiled | variables, stdout=log, stderr=log
    )
    try:
        answers = False
        while not answers:
            with (
                suppress(OSError),
                urllib.request.urlopen(f"{url}/_stcore/health", timeout=1) as reply,
            ):
                answers = reply.status == 200
            time.sleep(0.05)
        yield Served(url, (running.pid,))
    finally:
        running.terminate()
        running.wait(timeout=20)


@contextmanager
def proxy(urls: Sequence[str], listen: int = 8790) -> Iterator[str]:
    """Runs nginx with `deploy/nginx.conf` before servers."""
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/usr/local/sbin")
    if nginx is None:
        raise ValueError("Several processes need nginx: apt-get install nginx-light")
    before, _, servers = (
        (ROOT / "deploy" / "nginx.conf").read_text().partition("    server 127.0.0.1:8501")
    )
    after = servers.partition("\n}")[2]
    lines = "\n".join(f"    server {urlsplit(url).netloc} max_fails=0;" for url in urls)
    site = f"{before}{lines}\n}}{after}"
    with tempfile.TemporaryDirectory() as folder:
        site = site.replace("listen 8080", f"listen 127.0.0.1:{listen}").replace(
            "/var/lib/nginx", folder
        )
        main = f"user {getpass.getuser()}; worker_processes 1; pid {folder}/pid; "
        main += f"error_log {folder}/error.log;\nevents {{ worker_connections 2048; }}\n"
        path = Path(folder, "nginx.conf")
        path.write_text(f"{main}http {{ access_log off;\n{site}\n}}\n")
        command = [nginx, "-p", folder, "-c", str(path), "-g", "daemon off;"]
        running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            yield f"http://127.0.0.1:{listen}"
        finally:
            running.terminate()
            running.wait(timeout=20)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


def visit(browser: Browser, url: str, ready: str = "true") -> Page:
    """A page of a new visitor with an empty cache, once a condition holds in it."""
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.goto(url)
    page.wait_for_function(ready, timeout=300_000)
    return page


def milliseconds(page: Page, event: str, condition: str, act: Callable[[], object]) -> float:
    """Milliseconds from an event in the browser to the end of the first frame that meets a
    condition."""
    page.evaluate(WATCH, [event, condition])
    act()
    page.wait_for_function("window.took", timeout=60_000)
    took: float = page.evaluate("window.took")
    settle(page)
    return took


def enter(page: Page, label: str, text: str, condition: str) -> float:
    """Types a text; milliseconds from Enter to a painted view."""
    box = page.get_by_label(label)
    box.fill(text)
    return milliseconds(page, "keydown", condition, lambda: box.press("Enter"))


def settle(page: Page) -> None:
    """Waits until the server is idle."""
    page.wait_for_function(RESTS, timeout=300_000)
    page.wait_for_timeout(150)


def steps(page: Page, count: int) -> list[float]:
    """Milliseconds of each of several cursor steps, to the painted view."""
    page.focus(".lv")
    times = []
    for _ in range(count):
        at = int(page.get_attribute(".lv", "data-painted") or 0)
        done = f"document.querySelector('.lv').dataset.painted === '{at + 1}'"
        times.append(milliseconds(page, "keydown", done, lambda: page.keyboard.press("ArrowRight")))
    return times


def compare(
    what: str,
    ours: Sequence[float],
    reference: Sequence[float],
    unit: str,
    limit: float,
    named: str = "reference",
) -> None:
    """Prints two medians, their ratio, and whether it is within its limit."""
    a = statistics.median(ours)
    b = statistics.median(reference)
    verdict = f"at most {limit:g}  {'ok' if a / b <= limit else 'over'}"
    print(
        f"{what:<40} {a:8.2f} {unit}  {named} {b:8.2f} {unit}  ratio {a / b:5.2f}  {verdict}",
        flush=True,
    )


class Wire:
    """Counts the bytes of a page's web-socket messages, deflated as uvicorn deflates them (RFC
    7692, 7.2.1).

    A browser tells messages only as they are once inflated.
    """

    def __init__(
        self,
        page: Page,  # the page, before it opens an address of the app
    ) -> None:
        self.received, self.sent = 0, 0
        page.on("websocket", self._listen)

    def clear(self) -> None:
        """Begins to count anew."""
        self.received, self.sent = 0, 0

    def _listen(self, link: WebSocket) -> None:
        down, up = (zlib.compressobj(wbits=-12, memLevel=5) for _ in range(2))
        link.on("framereceived", partial(self._count, "received", down))
        link.on("framesent", partial(self._count, "sent", up))

    def _count(self, way: str, deflate: zlib._Compress, data: str | bytes) -> None:
        content = data.encode() if isinstance(data, str) else data
        size = len(deflate.compress(content)) + len(deflate.flush(zlib.Z_SYNC_FLUSH)) - 4
        vars(self)[way] += size + next((header for below, header in HEADER if size < below), 10)
