"""Measures how the server answers many visitors at once, by web-socket sessions as browsers make them.

    python benchmarks/load.py [--visitors 10 20 50] [--seconds 120 | --requests 10000] [--processes 1]
                              [--url URL --pid PID ...]
    python benchmarks/load.py --redraws 10

Each visitor moves the cursor every 2 s and asks for another sentence every 20 s; of five visitors, three type
at the home page, one opens links in which a head is switched off, and one is at the page Beam search. First,
one visitor alone does the same: the quiet times, to which everything is compared. Afterwards, every answer is
compared with that of a fresh server which one visitor has alone: each figure of each sentence, byte for byte;
and after each step the server must name this visitor's translation and this step. `--requests` makes the runs
as long as so many answers need together.

`--redraws` measures one thing: how long a visitor waits for a sentence while another, with so many tabs of
one browser, only draws the page *Positions* again and again, each time with another base.

It starts the servers itself; with `--processes 2` or more, behind nginx with `deploy/nginx.conf`. With
`--url`, it uses the server that runs there (on this machine), whose processes `--pid` names.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import itertools
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from websockets.exceptions import WebSocketException

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.app import process, processor, resident  # noqa: E402
from benchmarks.session import FailedError, Session  # noqa: E402

MODEL = "en-pt"
STEP_EVERY, SENTENCE_EVERY = 2.0, 20.0
MOST_VISITORS, MOST_SECONDS = 200, 900.0
CHANGE = "ablate_cross_3_5"
LARGE = {"d_model": "512", "positions": "4096"}
"""The largest table of the page *Positions*."""
MORE = 1.15
"""How much longer visitors stay than a given number of answers needs if none is late."""
STEP_GOAL, SENTENCE_GOAL, MEMORY_GOAL = 1.0, 3.0, 1.2
QUIET_SENTENCES, QUIET_STEPS = 6, 6
SORTS = ("types", "types", "types", "changes", "searches")
WORDS = (
    (
        "The teacher",
        "My sister",
        "Our neighbour",
        "The old man",
        "Her friend",
        "The young doctor",
        "His boss",
    ),
    ("found", "bought", "sold", "wanted", "forgot", "lost", "showed me", "remembered"),
    ("a new house", "the red car", "two books", "the key", "an old picture", "the letter", "a small boat"),
    ("yesterday", "in the city", "last year", "after work", "before dinner", "on the way home", "on Monday"),
)
Gone = (FailedError, WebSocketException, OSError)


@dataclass
class Seen:
    """What visitors saw."""

    steps: list[float] = field(default_factory=list)  # seconds of each step
    sentences: list[float] = field(default_factory=list)  # seconds of each sentence
    searches: list[float] = field(default_factory=list)  # those of the page Beam search
    openings: list[float] = field(default_factory=list)  # seconds until a page was open
    answers: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)  # by sort and text
    errors: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)  # answers that belong to something else
    bytes: int = 0

    @property
    def requests(self) -> int:
        """Number of answers."""
        return len(self.steps) + len(self.sentences) + len(self.searches) + len(self.openings)


class Visitor:
    """One visitor, who does the same again and again."""

    def __init__(
        self,
        base: str,  # the address of the server
        sort: str,  # what the visitor does, one of `SORTS`
        texts: Iterator[str],  # the sentences
        seen: Seen,  # keeps what was seen
    ) -> None:
        self._sort, self._texts, self._seen = sort, texts, seen
        self._session = Session(base, "beam_search" if sort == "searches" else "")
        self._step = 0

    async def open(self) -> None:
        """Opens the page."""
        text = next(self._texts)
        self._seen.openings.append(await self._session.open(**self._params(text)))
        self._opened(text)

    async def stay(self, start: float, seconds: float) -> None:
        """Steps and asks until the time is over."""
        clock, ends = asyncio.get_running_loop().time, start + seconds
        step = start + STEP_EVERY * random.random()
        sentence = start + SENTENCE_EVERY * random.random()
        while min(step, sentence) < ends:
            await asyncio.sleep(min(step, sentence) - clock())
            if sentence <= step:
                await self.ask()
                sentence = max(sentence + SENTENCE_EVERY, clock())
            else:
                await self.move()
                step = max(step + STEP_EVERY, clock())

    async def ask(self) -> None:
        """Asks for the next sentence."""
        text = next(self._texts)
        if self._sort == "changes":
            took = await self._session.follow(**self._params(text))
        else:
            took = await self._session.type(text)
        (self._seen.searches if self._sort == "searches" else self._seen.sentences).append(took)
        self._opened(text)

    async def move(self) -> None:
        """Moves the cursor by one."""
        self._step = (self._step + 1) % self._session.steps()
        trace = self._session.shown["trace"]
        self._seen.steps.append(await self._session.step(self._step))
        shown = self._session.shown
        if (shown["trace"], shown["step"]) != (trace, self._step):
            self._seen.mixed.append(f"step {self._step} of {trace}: {shown['step']} of {shown['trace']}")

    async def leave(self) -> None:
        """Closes the page."""
        self._seen.bytes += self._session.bytes
        await self._session.leave()

    def _params(self, text: str) -> dict[str, str]:
        params = {"model": MODEL, "text": text}
        return params | ({"changes": CHANGE} if self._sort == "changes" else {})

    def _opened(self, text: str) -> None:
        self._step = int(self._session.shown["step"])
        found, known = self._session.answer(), self._seen.answers.setdefault((self._sort, text), {})
        if known and known != found:
            self._seen.mixed.append(f"{text!r} was answered in two ways")
        known |= found


def sentences(seed: int) -> Iterator[str]:
    """Sentences, each another, in an order that a seed decides."""
    all_of_them = [f"{' '.join(words)}." for words in itertools.product(*WORDS)]
    random.Random(seed).shuffle(all_of_them)
    return iter(all_of_them)


async def visit(base: str, visitors: int, seconds: float, texts: Iterator[str]) -> Seen:
    """Lets many visitors come one after the other, stay, and leave."""
    seen, there = Seen(), []

    async def come(number: int) -> None:
        visitor = Visitor(base, SORTS[number % len(SORTS)], texts, seen)
        await asyncio.sleep(0.2 * number)
        try:
            await visitor.open()
            there.append(visitor)
        except Gone as error:
            seen.errors.append(str(error))

    async def stay(visitor: Visitor, start: float) -> None:
        try:
            await visitor.stay(start, seconds)
        except Gone as error:
            seen.errors.append(str(error))

    await asyncio.gather(*(come(number) for number in range(visitors)))
    start = asyncio.get_running_loop().time()
    await asyncio.gather(*(stay(visitor, start) for visitor in there))
    for visitor in there:
        await visitor.leave()
    return seen


async def alone(base: str, texts: Iterator[str], count: int = QUIET_SENTENCES) -> Seen:
    """The quiet run: each sort of visitor alone, one after the other; each asks for some sentences."""
    seen = Seen()
    for sort in dict.fromkeys(SORTS):
        visitor = Visitor(base, sort, texts, seen)
        await visitor.open()
        for _ in range(count):
            await visitor.ask()
            for _ in range(QUIET_STEPS):
                await visitor.move()
        await visitor.leave()
    return seen


async def again(base: str, asked: Sequence[tuple[str, str]]) -> Seen:
    """One visitor of each sort asks for the sentences of others."""
    seen = Seen()
    for sort in dict.fromkeys(sort for sort, _ in asked):
        texts = [text for of, text in asked if of == sort]
        visitor = Visitor(base, sort, iter(texts), seen)
        await visitor.open()
        for _ in texts[1:]:
            await visitor.ask()
        await visitor.leave()
    return seen


async def beside_redraws(base: str, tabs: int, count: int = QUIET_SENTENCES) -> tuple[list[float], int]:
    """Seconds of sentences of one visitor while tabs of another draw a page again; how often they did."""
    first, drawn = Session(base), 0
    await first.open(model=MODEL)
    redrawing = [first, *(Session(base, cookies=first.cookies) for _ in range(tabs - 1))]
    stop = asyncio.Event()

    async def redraw(tab: Session) -> None:
        nonlocal drawn
        if tab is not first:
            await tab.open(model=MODEL)
        await tab.go("positions", **LARGE)
        for number in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
            found = ((key, own) for key, (_, own, _) in tab.controls.items() if own.label == "Base")
            key, slider = next(found)
            await tab.choose(key, "string_array_value", [slider.options[number % len(slider.options)]])
            drawn += 1
        await tab.leave()

    other, texts = Session(base), sentences(1)
    await other.open(model=MODEL)
    running = [asyncio.create_task(redraw(tab)) for tab in redrawing if tabs]
    await asyncio.sleep(5 if tabs else 0)
    took = [await other.type(next(texts)) for _ in range(count)]
    stop.set()
    await asyncio.gather(*running)
    return took, drawn


def redraws(options: argparse.Namespace) -> None:
    """Prints how long a sentence takes beside the tabs of another visitor, and alone."""
    with served(options.models, 1) as there:
        asyncio.run(alone(there.url, sentences(0), 1))
        for tabs in (0, options.redraws):
            took, drawn = asyncio.run(beside_redraws(there.url, tabs))
            print(
                f"{tabs} tabs of another visitor, {drawn} pages drawn: Enter → last figure "
                f"p50 {statistics.median(took):.2f} s, at most {max(took):.2f} s",
                flush=True,
            )


@dataclass(frozen=True)
class Served:
    """A server."""

    url: str
    pids: tuple[int, ...]  # its processes; none if nobody named them

    def memory(self) -> float:
        """MB that its processes hold."""
        return sum(map(resident, self.pids))

    def seconds(self) -> float:
        """Seconds of processor time that they have used."""
        return sum(map(processor, self.pids))


@contextmanager
def served(models: Path | None, processes: int) -> Iterator[Served]:
    """Starts a server, with several processes behind nginx."""
    with ExitStack() as stack:
        started = [stack.enter_context(process("app.py", models)) for _ in range(processes)]
        pids = tuple(pid for _, pid in started)
        if processes == 1:
            yield Served(started[0][0], pids)
            return
        yield Served(stack.enter_context(proxy([urlsplit(url).port or 0 for url, _ in started])), pids)


@contextmanager
def proxy(ports: Sequence[int], listen: int = 8790) -> Iterator[str]:
    """Runs nginx with `deploy/nginx.conf` before several ports."""
    text = (ROOT / "deploy" / "nginx.conf").read_text()
    before, servers, after = text.partition("    server 127.0.0.1:8501")
    after = after.partition("\n}")[2]
    lines = "\n".join(f"    server 127.0.0.1:{port} max_fails=0;" for port in ports)
    assert servers
    site = f"{before}{lines}\n}}{after}".replace("listen 8080", f"listen 127.0.0.1:{listen}")
    with tempfile.TemporaryDirectory() as folder:
        own, site = Path(folder), site.replace("/var/lib/nginx", folder)
        whole = f"user {getpass.getuser()}; worker_processes 1; pid {own}/pid; error_log {own}/error.log;\n"
        whole += f"events {{ worker_connections 2048; }}\nhttp {{ access_log off;\n{site}\n}}\n"
        (own / "nginx.conf").write_text(whole)
        nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/usr/local/sbin")
        if nginx is None:
            raise SystemExit("Several processes need nginx: apt-get install nginx-light")
        command = [nginx, "-p", folder, "-c", str(own / "nginx.conf"), "-g", "daemon off;"]
        running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            yield f"http://127.0.0.1:{listen}"
        finally:
            running.terminate()
            running.wait(timeout=20)


def busy_seconds() -> float:
    """Seconds that all processors of this machine have computed, for whomever."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system = map(int, fields[:3])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def percentile(values: Sequence[float], share: float) -> float:
    """A percentile; not a number without values."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def report(what: str, found: Sequence[float], quiet: Sequence[float], goal: float) -> None:
    """Prints the median and the 95th percentile of times, and their ratios to the quiet run's median."""
    if not found:
        return
    middle, late, base = statistics.median(found), percentile(found, 0.95), statistics.median(quiet)
    verdict = "ok" if late < goal else "over"
    print(
        f"  {what:<28} {len(found):5} ×  p50 {middle:6.3f} s ({middle / base:5.1f} × quiet)"
        f"  p95 {late:6.3f} s ({late / base:5.1f} ×)  goal {goal:g} s  {verdict}",
        flush=True,
    )


def measure(served: Served, visitors: int, options: argparse.Namespace, quiet: Seen, seed: int) -> Seen:
    """One run with some visitors, printed."""
    before, worked, own, whole = served.memory(), served.seconds(), time.process_time(), busy_seconds()
    began = time.perf_counter()
    seen = asyncio.run(visit(served.url, visitors, options.seconds, sentences(seed)))
    took = time.perf_counter() - began
    print(
        f"{visitors} visitors, {took:.0f} s, {seen.requests} answers, {len(seen.errors)} errors", flush=True
    )
    report("a step", seen.steps, quiet.steps, STEP_GOAL)
    report("Enter → last figure", seen.sentences, quiet.sentences, SENTENCE_GOAL)
    report("the same, Beam search", seen.searches, quiet.searches, SENTENCE_GOAL)
    report("opening the page", seen.openings, quiet.openings, SENTENCE_GOAL)
    for what, count in Counter(seen.errors).most_common(5):
        print(f"  error, {count} ×: {what:.200}")
    if served.pids and seen.requests:
        busy, mine, everybody = (
            served.seconds() - worked,
            time.process_time() - own,
            busy_seconds() - whole,
        )
        print(
            f"  processor: server {busy / took:.2f} cores, {1000 * busy / seen.requests:.0f} ms an answer; "
            f"the client {mine / took:.2f} cores, all others {(everybody - busy - mine) / took:.2f}",
            flush=True,
        )
        crowded = served.memory()
        time.sleep(options.rest)
        left = served.memory()
        verdict = "ok" if left <= MEMORY_GOAL * before else "over"
        print(
            f"  memory: {before:.0f} MB before, {crowded:.0f} MB with them, {left:.0f} MB {options.rest:g} s "
            f"after they left ({left / before:.2f} ×, at most {MEMORY_GOAL:g} ×)  {verdict}",
            flush=True,
        )
    return seen


def compare(seen: Seen, fresh: Seen) -> int:
    """Prints answers that differ from those of a visitor alone; how many figures were compared."""
    figures = 0
    for (sort, text), found in seen.answers.items():
        expected = fresh.answers.get((sort, text), {})
        figures += len(found)
        wrong = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
        if wrong:
            seen.mixed.append(f"{sort}, {text!r}: {', '.join(wrong)}")
    return figures


def main() -> None:
    """Runs everything."""
    options = _options()
    if options.redraws:
        redraws(options)
        return
    with ExitStack() as stack:
        if options.url:
            there = Served(options.url.rstrip("/"), tuple(options.pid))
        else:
            there = stack.enter_context(served(options.models, options.processes))
        texts = sentences(0)
        for _ in range(3 * options.processes):  # the model and the modules of both pages are loaded
            asyncio.run(alone(there.url, texts, 1))
        quiet = asyncio.run(alone(there.url, texts))
        print(
            f"alone: a step {statistics.median(quiet.steps):.3f} s, Enter → last figure "
            f"{statistics.median(quiet.sentences):.3f} s, Beam search "
            f"{statistics.median(quiet.searches):.3f} s",
            flush=True,
        )
        runs = [
            measure(there, visitors, options, quiet, seed)
            for seed, visitors in enumerate(options.visitors, start=1)
        ]
        fresh = there if options.url else stack.enter_context(served(options.models, 1))
        asked = dict.fromkeys(itertools.chain.from_iterable(seen.answers for seen in runs))
        right = asyncio.run(again(fresh.url, list(asked)))
    figures = sum(compare(seen, right) for seen in runs)
    mixed, errors = [text for seen in runs for text in seen.mixed], sum(len(seen.errors) for seen in runs)
    requests, steps = sum(seen.requests for seen in runs), sum(len(seen.steps) for seen in runs)
    well = not mixed and not errors and requests >= options.requests
    print(
        f"{requests:,} answers (asked for: {options.requests or 'any'}), all compared: {steps:,} steps "
        f"with what was asked, {requests - steps:,} translations ({figures:,} figures of {len(asked):,} "
        f"sentences) with a visitor's alone: {len(mixed)} wrong, {errors} errors (goal: none)  "
        f"{'ok' if well else 'over'}"
    )
    for text in mixed[:10]:
        print(f"  wrong: {text}")
    raise SystemExit(not well)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=Path, help="folder of models; by default the bundled models")
    parser.add_argument("--visitors", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument("--seconds", type=float, default=120, help="how long they stay")
    parser.add_argument(
        "--requests", type=int, default=0, help="answers of all runs; decides how long they stay"
    )
    parser.add_argument("--rest", type=float, default=140, help="seconds until memory is read again")
    parser.add_argument(
        "--processes", type=int, default=1, help="processes of the server, behind nginx if several"
    )
    text = "measure a sentence beside so many tabs of one visitor that draw Positions again"
    parser.add_argument("--redraws", type=int, default=0, metavar="TABS", help=text)
    parser.add_argument("--url", help="a server on this machine that runs already")
    parser.add_argument("--pid", type=int, nargs="*", default=[], help="its processes")
    options = parser.parse_args()
    if options.requests:
        a_second = sum(options.visitors) * (1 / STEP_EVERY + 1 / SENTENCE_EVERY)
        options.seconds = MORE * options.requests / a_second
    if max(options.visitors) > MOST_VISITORS or options.seconds > MOST_SECONDS:
        parser.error(f"at most {MOST_VISITORS} visitors for {MOST_SECONDS:g} s")
    if options.url and urlsplit(options.url).hostname not in ("127.0.0.1", "localhost", "::1"):
        parser.error("only a server on this machine can be asked")
    return options


if __name__ == "__main__":
    main()
