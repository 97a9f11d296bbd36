"""Many visitors at once, by web-socket sessions as browsers make them: a class, redrawing tabs, an
hour.

Of a class, each visitor moves the cursor every 2 s and asks for another sentence every 20 s; of
five, three type at the home page, one opens links in which a head is switched off, and one is at
the page Beam search.
"""

import asyncio
import itertools
import os
import random
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any

from websockets.exceptions import WebSocketException

from benchmarks.browser import Served, proxy, served
from benchmarks.session import FailedError, SaidError, Session
from benchmarks.timing import percentile
from explorer.app.address import sitemap

MODEL, CHANGE = "en-pt", "ablate_cross_3_5"
STEP_EVERY, SENTENCE_EVERY = 2.0, 20.0
SORTS = ("types", "types", "types", "changes", "searches")
GOALS = {"a step": 1.0, "a sentence": 3.0, "a beam search": 3.0, "opening": 3.0}
"""Seconds that 95 of 100 answers may take."""
MOST_GROWTH = 1.2
LARGE = {"d_model": "512", "positions": "4096"}
"""The largest table of the page *Positions*."""
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
    (
        "a new house",
        "the red car",
        "two books",
        "the key",
        "an old picture",
        "the letter",
        "a small boat",
    ),
    (
        "yesterday",
        "in the city",
        "last year",
        "after work",
        "before dinner",
        "on the way home",
        "on Monday",
    ),
)
PLACES = [(name, view) for name, page in sitemap.PAGES.items() for view in page.sections or ("",)]
LINKS = ("app", "cross_attention", "encoder_self_attention", "decoder_self_attention")
COLOUR = re.compile(r"\x1b\[[\d;]*m")
RAISED = re.compile(r"[\w.]+(Error|Exception|Interrupt)\b")
"""What colours the server's log, and the line that ends a traceback in it."""
Visitors = Annotated[int, "visitors at once"]
Gone = (FailedError, WebSocketException, OSError)
Answers = dict[tuple[str, ...], dict[str, str]]
"""Hashes of the figures of each sentence, by who asked and what for."""


@dataclass
class Seen:
    """What visitors saw."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in GOALS})
    answers: Answers = field(default_factory=dict)
    did: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)  # what belongs to something else
    failed: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)  # what pages refuse in a sentence

    def compare(self, key: tuple[str, ...], session: Session) -> None:
        """Notes the figures on a screen; wrong if the same question was answered in another way."""
        figures = session.answer()
        if self.answers.setdefault(key, figures) != figures:
            self.wrong[f"{key} was answered in two ways"] += 1


def sentences(seed: int) -> Iterator[str]:
    """Sentences, each another, in an order that a seed decides."""
    every = [f"{' '.join(words)}." for words in itertools.product(*WORDS)]
    random.Random(seed).shuffle(every)
    return iter(every)


async def move(session: Session, seen: Seen, step: int) -> None:
    """Moves the cursor; wrong is an answer with another translation or another step."""
    trace = session.shown["trace"]
    seen.seconds["a step"].append(await session.step(step))
    if (shown := (session.shown["trace"], session.shown["step"])) != (trace, step):
        seen.wrong[f"step {step} of {trace} was answered with {shown}"] += 1


# --- a class -------------------------------------------------------------------------------------


class Student:
    """One visitor of a class, who does the same again and again."""

    def __init__(self, base: str, sort: str, texts: Iterator[str], seen: Seen) -> None:
        self._sort, self._texts, self._seen = sort, texts, seen
        self.session = Session(base, "beam_search" if sort == "searches" else "")
        self._step = 0

    async def ask(self) -> None:
        """Opens the page with the next sentence, or asks for this one there."""
        text = next(self._texts)
        change = {"changes": CHANGE} if self._sort == "changes" else {}
        what = "a beam search" if self._sort == "searches" else "a sentence"
        if not self.session.shown:
            what = "opening"
            answered = self.session.open(model=MODEL, text=text, **change)
        elif change:
            answered = self.session.follow(model=MODEL, text=text, **change)
        else:
            answered = self.session.type(text)
        self._seen.seconds[what].append(await answered)
        self._step = int(self.session.shown["step"])
        self._seen.compare((self._sort, text), self.session)

    async def move(self) -> None:
        """Moves the cursor by one."""
        self._step = (self._step + 1) % self.session.steps()
        await move(self.session, self._seen, self._step)

    async def stay(self, start: float, seconds: float) -> None:
        """Steps and asks until the time is over."""
        clock = asyncio.get_running_loop().time
        ends = start + seconds
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


async def visit(base: str, visitors: int, seconds: float, texts: Iterator[str]) -> Seen:
    """Lets many visitors come one after the other, stay, and leave."""
    seen = Seen()
    there = list[Student]()

    async def tried(act: Awaitable[None]) -> None:
        try:
            await act
        except Gone as error:
            seen.failed[str(error)] += 1

    async def come(number: int) -> None:
        student = Student(base, SORTS[number % len(SORTS)], texts, seen)
        await asyncio.sleep(0.2 * number)
        await student.ask()
        there.append(student)

    await asyncio.gather(*(tried(come(number)) for number in range(visitors)))
    start = asyncio.get_running_loop().time()
    await asyncio.gather(*(tried(student.stay(start, seconds)) for student in there))
    for student in there:
        await student.session.leave()
    return seen


async def alone(base: str, texts_of: Mapping[str, Sequence[str]], steps: int = 0) -> Seen:
    """One visitor of each sort, one after the other, asks for some sentences and takes steps in
    each."""
    seen = Seen()
    for sort, texts in texts_of.items():
        student = Student(base, sort, iter(texts), seen)
        await student.ask()
        for _ in texts[1:]:
            await student.ask()
            for _ in range(steps):
                await student.move()
        await student.session.leave()
    return seen


def load(
    *, visitors: Visitors = 50, seconds: float = 120, processes: int = 1, rest: float = 140
) -> int:
    """A class beside one visitor alone; each figure of each sentence beside a fresh server's,
    byte for byte.

    seconds: how long the visitors stay
    processes: processes of the server, behind nginx if several
    rest: seconds after which memory is read again
    """
    with ExitStack() as stack:
        servers = [stack.enter_context(served()) for _ in range(processes)]
        pids = tuple(server.pids[0] for server in servers)
        url = servers[0].url
        if processes > 1:
            url = stack.enter_context(proxy([server.url for server in servers]))
        there = Served(url, pids)
        texts = sentences(0)
        few = {sort: list(itertools.islice(texts, 7)) for sort in dict.fromkeys(SORTS)}
        for _ in range(3 * processes):  # the model and the modules of both pages are loaded
            asyncio.run(alone(there.url, {sort: some[:2] for sort, some in few.items()}))
        quiet = asyncio.run(
            alone(there.url, {sort: list(itertools.islice(texts, 7)) for sort in few}, 6)
        )
        seen = _measured(there, visitors, seconds, quiet, rest)
        fresh = stack.enter_context(served())
        typed = {sort: [text for of, text in seen.answers if of == sort] for sort in few}
        expected = asyncio.run(
            alone(fresh.url, {sort: some for sort, some in typed.items() if some})
        )
    for key, figures in seen.answers.items():
        if expected.answers[key] != figures:
            seen.wrong[f"{key} was answered otherwise by a fresh server"] += 1
    return int(_faults({"errors": seen.failed, "wrong": seen.wrong}))


def _measured(there: Served, visitors: int, seconds: float, quiet: Seen, rest: float) -> Seen:
    before = there.memory()
    used = there.processor()
    began = time.perf_counter()
    seen = asyncio.run(visit(there.url, visitors, seconds, sentences(1)))
    took = time.perf_counter() - began
    used = there.processor() - used
    answers = sum(map(len, seen.seconds.values()))
    print(
        f"{visitors} visitors, {took:.0f} s, {answers:,} answers; seconds beside a visitor's alone:"
    )
    for what, seconds_of in seen.seconds.items():
        base = statistics.median(quiet.seconds[what])
        late = percentile(seconds_of, 0.95)
        verdict = "ok" if late < GOALS[what] else "over"
        middle = (
            f"p50 {percentile(seconds_of, 0.5):6.3f} ({percentile(seconds_of, 0.5) / base:5.1f} ×)"
        )
        print(
            f"  {what:<14} {len(seconds_of):5} ×  {middle}  p95 {late:6.3f} ({late / base:5.1f} ×)  "
            f"{verdict}"
        )
    print(f"  processor: {used / took:.2f} cores, {1000 * used / answers:.0f} ms an answer")
    crowded = there.memory()
    time.sleep(rest)
    left = there.memory()
    verdict = "ok" if left <= MOST_GROWTH * before else "over"
    print(
        f"  memory: {before:.0f} MB before, {crowded:.0f} with them, {left:.0f} {rest:g} s after "
        f"they left ({left / before:.2f} ×, at most {MOST_GROWTH:g} ×)  {verdict}",
        flush=True,
    )
    return seen


def _faults(counts: Mapping[str, Counter[str]]) -> bool:
    """Prints what went wrong; whether anything did."""
    for title, faults in counts.items():
        print(f"{title}: {sum(faults.values())}")
        for what, count in faults.most_common(15):
            print(f"  {count} × {what:.220}")
    return any(counts.values())


# --- tabs that draw a page again and again -------------------------------------------------------


def redraws(*, tabs: Annotated[int, "tabs"] = 10) -> int:
    """How long a sentence takes while so many tabs of another browser only draw *Positions*, and
    alone."""
    with served() as there:
        asyncio.run(
            alone(there.url, {sort: list(itertools.islice(sentences(0), 2)) for sort in SORTS})
        )
        for count in (0, tabs):
            took, drawn = asyncio.run(_beside_redraws(there.url, count))
            print(
                f"{count} tabs of another visitor, {drawn} pages drawn: Enter → last figure "
                f"p50 {statistics.median(took):.2f} s, at most {max(took):.2f} s",
                flush=True,
            )
    return 0


async def _beside_redraws(base: str, tabs: int) -> tuple[list[float], int]:
    first = Session(base)
    drawn = 0
    stop = asyncio.Event()
    await first.open(model=MODEL)

    async def redraw(tab: Session) -> None:
        nonlocal drawn
        if tab is not first:
            await tab.open(model=MODEL)
        await tab.go("positions", **LARGE)
        for number in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
            key, slider = next(
                (key, control)
                for key, (_, control, _) in tab.controls.items()
                if control.label == "Base"
            )
            await tab.choose(
                key, "string_array_value", [slider.options[number % len(slider.options)]]
            )
            drawn += 1
        await tab.leave()

    drawing = list[Session]()
    if tabs:
        drawing = [first, *(Session(base, cookies=first.cookies) for _ in range(tabs - 1))]
    visitor = Session(base)
    texts = sentences(1)
    await visitor.open(model=MODEL)
    running = [asyncio.create_task(redraw(tab)) for tab in drawing]
    await asyncio.sleep(5 if tabs else 0)
    took = [await visitor.type(next(texts)) for _ in range(6)]
    stop.set()
    await asyncio.gather(*running)
    return took, drawn


# --- an hour on all pages ------------------------------------------------------------------------


class Wanderer:
    """One visitor, who does something at random again and again, and now and then leaves in the
    middle."""

    def __init__(self, base: str, seed: int, seen: Seen) -> None:
        self._base = base
        self._seen = seen
        self._random = random.Random(seed)
        self._new = sentences(seed)
        self._common = list(itertools.islice(sentences(0), 12))
        self._session: Session | None = None
        self._at = ""

    async def stay(self, ends: float) -> None:
        """Wanders until a time of the monotonic clock."""
        while time.monotonic() < ends:
            try:
                await self._act()
            except SaidError as error:
                self._seen.said[f"{self._at}: {error}"[:160]] += 1
                await self._leave()
            except Gone as error:
                self._seen.failed[f"{self._at}: {type(error).__name__}: {error}"[:200]] += 1
                await self._leave()
            await asyncio.sleep(self._random.uniform(0.2, 2))
        await self._leave()

    async def _act(self) -> None:
        if (session := self._session) is None:
            await self._come()
            return
        acts = {"go": 6, "control": 6, "rush": 1} | (
            {"step": 8, "type": 2} if session.linked else {}
        )
        act = self._random.choices(list(acts), list(acts.values()))[0]
        match act:
            case "go":
                await self._go(session)
            case "control":
                await self._control(session)
            case "step":
                await move(session, self._seen, self._random.randrange(session.steps()))
            case "type":
                await session.type(next(self._new))
            case "rush":  # asks for a page, and leaves before it is there
                try:
                    await asyncio.wait_for(self._go(session), self._random.uniform(0.05, 3))
                except TimeoutError:
                    act = "left at once"
                await self._leave()
        self._seen.did[act] += 1

    def _place(self) -> dict[str, str]:
        new = self._random.random() < 0.3
        text = next(self._new) if new else self._random.choice(self._common)
        return {"model": self._random.choice((MODEL, MODEL, MODEL, "en-de")), "text": text}

    async def _come(self) -> None:
        page = self._random.choice(LINKS)
        place = self._place()
        self._at = f"{page} ({place['model']})"
        self._session = Session(self._base, page.removeprefix(sitemap.HOME))
        await self._session.open(**place)
        self._seen.compare((page, *place.values()), self._session)
        self._seen.did["come"] += 1

    async def _leave(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.leave()

    async def _go(self, session: Session) -> None:
        page, view = self._random.choice(PLACES)
        self._at = f"{page}/{view}"
        place = self._place()
        await session.go(
            page.removeprefix(sitemap.HOME), **({"view": view} if view else {}), **place
        )

    async def _control(self, session: Session) -> None:
        offered = [
            (key, sort, *made)
            for key, (sort, element, _) in session.controls.items()
            if not element.form_id and (made := self._value(sort, element))
        ]
        if offered:
            key, sort, kind, value = self._random.choice(offered)
            label = session.controls[key][1].label
            self._at = f"{self._at.partition(' ')[0]} {sort} {label!r:.40} {value!r:.40}"
            await session.choose(key, kind, value)

    def _value(self, sort: str, element: Any) -> tuple[str, Any] | None:
        """The field of a control's message, and a value; None if there is nothing to choose."""
        match sort:
            case "button":
                return "trigger_value", True
            case "checkbox":
                return "bool_value", self._random.random() < 0.5
            case "selectbox" if element.options:
                return "string_value", self._random.choice(element.options)
            case "button_group" if element.options:
                return "string_array_value", [self._random.choice(element.options).content]
            case "slider" if element.options:
                return "string_array_value", [self._random.choice(element.options)]
            case "slider" | "number_input" if element.step and element.max < 1e6:
                steps = int((element.max - element.min) / element.step)
                value = element.min + self._random.randint(0, steps) * element.step
                return (
                    ("double_array_value", [value]) if sort == "slider" else ("double_value", value)
                )
        return None


def soak(*, minutes: float = 60, visitors: Visitors = 10, seed: int = 1) -> int:
    """Visitors on all pages for a long time: faults, tracebacks, and how memory and handles grow.

    minutes: how long they stay
    seed: decides what they do

    Growth is the median of the last quarter of the time to that of the first, without the first
    minute.
    """
    os.environ["TRANSFORMER_HOSTED"] = "on"
    with tempfile.TemporaryFile("w+") as log, served(log=log) as there:
        seen, looks = asyncio.run(_soaked(there, minutes, visitors, seed))
        log.seek(0)
        lines = COLOUR.sub("", log.read()).splitlines()
        traces = [number for number, line in enumerate(lines) if "Traceback (most" in line]
        ends = Counter(
            next(filter(RAISED.match, lines[at + 1 :]), "") for at in traces
        )  # their last lines
    _faults({"did": seen.did, "refused in a sentence": seen.said})
    faulty = _faults({"failed": seen.failed, "wrong": seen.wrong, "tracebacks of the server": ends})
    settled = looks[6:] or looks
    quarter = max(1, len(settled) // 4)
    for what, values in zip(("memory", "handles"), zip(*settled, strict=True), strict=True):
        grown = statistics.median(values[-quarter:]) / statistics.median(values[:quarter])
        faulty |= grown > MOST_GROWTH
        print(
            f"{what}: last quarter / first {grown:.2f} × (at most {MOST_GROWTH:g}), last "
            f"{values[-1]:.0f}"
        )
    return int(faulty)


async def _soaked(
    there: Served, minutes: float, visitors: int, seed: int
) -> tuple[Seen, list[tuple[float, int]]]:
    """Lets visitors wander; what they saw, and MB and open files of the server every 10 s."""
    seen = Seen()
    looks = list[tuple[float, int]]()
    ends = time.monotonic() + 60 * minutes

    async def watch() -> None:
        for count in itertools.count(1):
            await asyncio.sleep(10)
            looks.append((there.memory(), len(os.listdir(f"/proc/{there.pids[0]}/fd"))))
            if count % 6 == 0:
                faults = f"{sum(seen.failed.values())} failed, {sum(seen.wrong.values())} wrong"
                holds = f"{looks[-1][0]:6.0f} MB, {looks[-1][1]} handles"
                print(
                    f"{count // 6:3} min: {holds}; {sum(seen.did.values())} acts, {faults}",
                    flush=True,
                )

    watching = asyncio.create_task(watch())
    everybody = [Wanderer(there.url, 1000 * seed + number, seen) for number in range(visitors)]
    await asyncio.gather(*(wanderer.stay(ends) for wanderer in everybody))
    watching.cancel()
    return seen, looks
