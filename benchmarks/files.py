"""Measures what the scripts, styles and fonts of first visits cost the processes, directly and behind nginx.

    python benchmarks/files.py [--visitors 50]

A browser opens the home page once and tells which files it asks for. Then so many visitors with empty caches,
eight at a time, ask for all of them: of the process itself, and of nginx with `deploy/nginx.conf` before it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.app import ARGUMENTS, CHROMIUM, READY, process, processor, visit  # noqa: E402
from benchmarks.load import proxy  # noqa: E402

AT_ONCE = 8


def files(url: str) -> list[str]:
    """Paths of the files that the home page asks for."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page, asked = visit(browser, "about:blank"), list[str]()
        page.on("request", lambda request: asked.append(urlsplit(request.url).path))
        page.goto(f"{url}/?text=We+like+new+music.")
        page.wait_for_function(READY, timeout=60_000)
        browser.close()
    return [path for path in asked if "/static/" in path]


def fetch(url: str, paths: Sequence[str], _: int) -> int:
    """Asks for all files over one connection; bytes of the answers."""
    link, size = HTTPConnection(urlsplit(url).netloc, timeout=60), 0
    for path in paths:
        link.request("GET", path, headers={"Accept-Encoding": "gzip"})
        with link.getresponse() as answer:
            assert answer.status == 200, path
            size += len(answer.read())
    link.close()
    return size


def main() -> None:
    """Prints seconds, bytes and the processes' time of both ways."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--visitors", type=int, default=50)
    count = parser.parse_args().visitors
    with process("app.py", None) as (url, pid), proxy([urlsplit(url).port or 0]) as before:
        paths, used = files(url), list[float]()
        print(f"{count} first visits, {len(paths)} files each")
        for name, base in (("the process itself", url), ("nginx before it", before)):
            start, spent = time.perf_counter(), processor(pid)
            with ThreadPoolExecutor(AT_ONCE) as pool:
                sizes = list(pool.map(partial(fetch, base, paths), range(count)))
            used.append(processor(pid) - spent)
            took, size = time.perf_counter() - start, sum(sizes) / count / 1e6
            print(
                f"{name:<20} {took:6.1f} s, {size:.2f} MB a visit, "
                f"{1000 * used[-1] / count:6.1f} ms of the process's time a visit",
                flush=True,
            )
        print(f"ratio of the process's time {used[1] / used[0]:.2f}")


if __name__ == "__main__":
    main()
