"""Lets visitors use all pages for a long time, and watches what the server says, keeps and holds.

    python benchmarks/soak.py [--minutes 60] [--visitors 10] [--seed 1]

Each visitor is a web-socket session that opens places of the menu, moves the cursor, changes controls,
presses buttons and asks for sentences, at random from a seed, and now and then leaves in the middle of
something. Wrong are: a step that is answered with another translation or step, and a sentence that two
visitors who just came see in two ways. A line a minute says how much memory and how many handles the server
holds (where /proc has them); at the end, the last quarter of the time is compared with the first, without the
first minute.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from websockets.exceptions import WebSocketException

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.app import process  # noqa: E402
from benchmarks.load import sentences  # noqa: E402
from benchmarks.session import FailedError, SaidError, Session  # noqa: E402
from explorer.app.address import sitemap  # noqa: E402

PLACES = [(name, view) for name, page in sitemap.PAGES.items() for view in page.sections or ("",)]
MODELS = ("en-pt",) * 4 + ("en-de", "en-de")
"""The last one has no decoder self-attention, so nobody comes with it."""
LINKS = ("app", "cross_attention", "encoder_self_attention", "decoder_self_attention")
"""Pages that a visitor who just came opens."""
COMMON = 12
"""Sentences that many visitors ask for."""
EVERY = 10
"""Seconds between two looks at the server."""
MOST_GROWTH = 1.2
COLOUR, RAISED = re.compile(r"\x1b\[[\d;]*m"), re.compile(r"[\w.]+(Error|Exception|Interrupt)\b")
"""What colours the server's log, and the line that ends a traceback in it."""


@dataclass
class Seen:
    """What visitors saw."""

    did: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)  # what pages refuse in a sentence
    answers: dict[tuple[str, ...], dict[str, str]] = field(default_factory=dict)  # of visitors who just came


class Wanderer:
    """One visitor, who does something at random again and again."""

    def __init__(
        self,
        base: str,  # the address of the server
        seed: int,  # decides what the visitor does
        seen: Seen,  # keeps what was seen
    ) -> None:
        self._base, self._seen, self._random = base, seen, random.Random(seed)
        self._new, self._texts = sentences(seed), list(itertools.islice(sentences(0), COMMON))
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
            except (FailedError, WebSocketException, OSError) as error:
                told = f"{self._at}: {type(error).__name__}: {error}"[:200]
                print(f"failed: {told}", flush=True)
                self._seen.failed[told] += 1
                await self._leave()
            await asyncio.sleep(self._random.uniform(0.2, 2))
        await self._leave()

    async def _act(self) -> None:
        if self._session is None:
            await self._come()
            return
        acts = {self._go: 6, self._control: 6, self._rush: 1}
        if self._session.linked:
            acts |= {self._step: 8, self._type: 2}
        act = self._random.choices(list(acts), list(acts.values()))[0]
        await act(self._session)
        self._seen.did[act.__name__.strip("_")] += 1

    def _text(self) -> str:
        return next(self._new) if self._random.random() < 0.3 else self._random.choice(self._texts)

    async def _come(self) -> None:
        page, model, text = self._random.choice(LINKS), self._random.choice(MODELS[:-1]), self._text()
        self._at = f"{page} ({model})"
        self._session = Session(self._base, _path(page))
        await self._session.open(model=model, text=text)
        found = self._session.answer()
        known = self._seen.answers.setdefault((page, model, text), found)
        if known != found:
            self._seen.wrong[f"{self._at}: {text!r} was answered in two ways"] += 1
        self._seen.did["come"] += 1

    async def _leave(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.leave()

    async def _go(self, session: Session) -> None:
        page, view = self._random.choice(PLACES)
        self._at = f"{page}/{view}"
        params = {"view": view} if view else {}
        if page != "language_model":
            params |= {"model": self._random.choice(MODELS), "text": self._text()}
        await session.go(_path(page), **params)

    async def _control(self, session: Session) -> None:
        offered = [
            (key, sort, *made)
            for key, (sort, element, _) in session.controls.items()
            if not element.form_id and (made := self._value(sort, element))
        ]
        if offered:
            key, sort, kind, value = self._random.choice(offered)
            self._at = (
                f"{self._at.partition(' ')[0]} {sort} {session.controls[key][1].label!r:.40} {value!r:.40}"
            )
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
                return ("double_array_value", [value]) if sort == "slider" else ("double_value", value)
        return None

    async def _step(self, session: Session) -> None:
        trace, step = session.shown["trace"], self._random.randrange(session.steps())
        await session.step(step)
        if (found := (session.shown["trace"], session.shown["step"])) != (trace, step):
            self._seen.wrong[f"{self._at}: step {step} of {trace} was answered with {found}"] += 1

    async def _type(self, session: Session) -> None:
        await session.type(next(self._new))

    async def _rush(self, session: Session) -> None:
        """Asks for a page, and leaves before it is there."""
        try:
            await asyncio.wait_for(self._go(session), self._random.uniform(0.05, 3))
        except TimeoutError:
            self._seen.did["left at once"] += 1
        await self._leave()


def _path(page: str) -> str:
    return "" if page == sitemap.HOME else page


@dataclass(frozen=True)
class Look:
    """The server at one time."""

    memory: float  # MB that it holds
    handles: float  # files that it has open


def look(pid: int) -> Look:
    """What a process holds."""
    held = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert held is not None
    return Look(int(held[1]) / 1024, len(os.listdir(f"/proc/{pid}/fd")))


async def watch(pid: int, looks: list[Look], seen: Seen) -> None:
    """Looks at the server again and again, and prints a line a minute, until it is cancelled."""
    for count in itertools.count(1):
        await asyncio.sleep(EVERY)
        looks.append(look(pid))
        if count % (60 // EVERY) == 0:
            faults = f"{sum(seen.failed.values())} failed, {sum(seen.wrong.values())} wrong"
            holds = f"{looks[-1].memory:6.0f} MB, {looks[-1].handles:.0f} handles"
            print(
                f"{count * EVERY / 60:3.0f} min: {holds}; {sum(seen.did.values())} acts, {faults}", flush=True
            )


async def soak(base: str, pid: int, options: argparse.Namespace) -> tuple[Seen, list[Look]]:
    """Lets the visitors wander, and watches."""
    seen, looks, ends = Seen(), list[Look](), time.monotonic() + 60 * options.minutes
    watching = asyncio.create_task(watch(pid, looks, seen))
    everybody = [Wanderer(base, 1000 * options.seed + number, seen) for number in range(options.visitors)]
    await asyncio.gather(*(each.stay(ends) for each in everybody))
    watching.cancel()
    return seen, looks


def growth(values: list[float]) -> float:
    """Ratio of the median of the last quarter to that of the first."""
    quarter = max(1, len(values) // 4)
    return statistics.median(values[-quarter:]) / statistics.median(values[:quarter])


def report(seen: Seen, looks: list[Look], log: IO[str]) -> bool:
    """Prints what was found; whether all is well."""
    log.seek(0)
    lines = COLOUR.sub("", log.read()).splitlines()
    traces = [number for number, line in enumerate(lines) if "Traceback (most" in line]
    ends = Counter(next(filter(RAISED.match, lines[at + 1 :]), "") for at in traces)
    for title, found in (
        ("did", seen.did),
        ("refused in a sentence", seen.said),
        ("failed", seen.failed),
        ("wrong", seen.wrong),
        ("tracebacks of the server", ends),
    ):
        print(f"{title}: {sum(found.values())}")
        for what, count in found.most_common(15):
            print(f"  {count} × {what:.220}")
    there = looks[int(60 // EVERY) :] or looks
    memory, handles = growth([each.memory for each in there]), growth([each.handles for each in there])
    print(f"last quarter / first: memory {memory:.2f} ×, handles {handles:.2f} × (at most {MOST_GROWTH:g} ×)")
    faults = [seen.failed, seen.wrong, ends]
    well = max(memory, handles) <= MOST_GROWTH and not any(faults)
    print("ok" if well else "over")
    return well


def main() -> None:
    """Runs everything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--visitors", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ |= {"TRANSFORMER_HOSTED": "on"}
    with tempfile.TemporaryFile("w+") as log, process("app.py", None, log=log) as (base, pid):
        seen, looks = asyncio.run(soak(base, pid, options))
        well = report(seen, looks, log)
    raise SystemExit(not well)


if __name__ == "__main__":
    main()
