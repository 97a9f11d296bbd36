"""A hosted instance, where anybody may come: one variable switches all of its bounds on.

``TRANSFORMER_HOSTED=on`` closes the Hub unless ``TRANSFORMER_HUB_ALLOWED`` names models
(`transformer/hub/settings.py`), and training unless ``TRANSFORMER_TRAIN_HERE`` is on
(`ui/server/workshop/limits.py`). Texts, searches and new translations are bounded here, and each run of a
page is logged.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from transformer.hub.settings import HOSTED_VARIABLE, is_hosted
from ui.address import session
from ui.address.kinds import BEAM, LARGEST_BEAM, MOST_DRAWS

CHARACTERS, HYPOTHESES = f"{HOSTED_VARIABLE}_CHARACTERS", f"{HOSTED_VARIABLE}_BEAM"
DRAWS, PER_MINUTE = f"{HOSTED_VARIABLE}_DRAWS", f"{HOSTED_VARIABLE}_PER_MINUTE"
VISITORS = f"{HOSTED_VARIABLE}_VISITORS"
METRICS = f"{HOSTED_VARIABLE}_METRICS"
ON, OFF = ("on", "yes", "true", "1"), ("off", "no", "false", "0")
MOST = 1_000_000_000
"""The largest number that a variable may give."""
_MINUTE = 60.0
_KNOWN = 10_000
"""Most visitors whose requests are remembered."""


class LaterError(ValueError):
    """A visitor has asked for much within a minute, and can ask again soon."""


@dataclass(frozen=True)
class Bounds:
    """What one visitor may ask for, and how many there may be."""

    characters: float = math.inf  # of a text
    beam: float = LARGEST_BEAM  # hypotheses of a search
    draws: float = MOST_DRAWS  # samples drawn at once
    per_minute: float = math.inf  # new translations, searches and draws; what is kept is free
    visitors: float = math.inf  # with an open page, of the process

    @classmethod
    def from_environment(cls) -> Bounds:
        """The bounds of a hosted instance as the environment sets them; none if it is not hosted.

        Raises:
            ValueError: a variable is not a number in its range.
        """
        if not is_hosted():
            return cls()
        return cls(
            number(CHARACTERS, 300),
            min(number(HYPOTHESES, 4), LARGEST_BEAM),
            min(number(DRAWS, 8), MOST_DRAWS),
            number(PER_MINUTE, 20),
            number(VISITORS, 100),
        )


def number(name: str, usual: float) -> float:
    """A number above 0 that a variable gives, or the usual one.

    Raises:
        ValueError: it is not a number in this range.
    """
    text = os.environ.get(name, "").strip()
    try:
        value = float(text) if text else usual
    except ValueError:
        value = math.nan
    if not 0 < value <= MOST:
        raise ValueError(f"{name} is {text!r:.20}; it must be a number above 0, and at most {MOST:,}.")
    return value


def check_texts(*texts: str | None) -> None:
    """Refuses texts that are too long for this instance.

    Raises:
        ValueError: one of them is.
    """
    most, longest = Bounds.from_environment().characters, max((len(text or "") for text in texts), default=0)
    if longest > most:
        log("refused", why="length")
        raise ValueError(
            f"This text has {longest:,} characters; this server takes at most {most:g}. "
            "Your own copy of the app takes more."
        )


def check_search(decode: str) -> None:
    """Refuses a way of decoding whose beam is too large for this instance.

    Raises:
        ValueError: it is.
    """
    most = Bounds.from_environment().beam
    if decode.startswith(BEAM) and int(decode.removeprefix(BEAM)) > most:
        log("refused", why="beam")
        raise ValueError(f"This server searches with at most {most:g} hypotheses; choose fewer.")


def check_draws(count: int) -> None:
    """Refuses more samples than this instance draws at once.

    Raises:
        ValueError: there are more.
    """
    most = Bounds.from_environment().draws
    if count > most:
        log("refused", why="draws")
        raise ValueError(f"This server draws at most {most:g} samples at once; choose fewer.")


class Rate:
    """How often each visitor asked for something new within the last minute."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,  # seconds
    ) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._asked: OrderedDict[str, deque[float]] = OrderedDict()

    def take(self, visitor: str, most: float) -> float:
        """Counts a request; seconds until the visitor may ask again if this one is too much, or else 0."""
        now = self._clock()
        with self._lock:
            times = self._asked.setdefault(visitor, deque())
            self._asked.move_to_end(visitor)
            while len(self._asked) > _KNOWN:
                self._asked.popitem(last=False)
            while times and times[0] <= now - _MINUTE:
                times.popleft()
            if len(times) >= most:
                return times[0] + _MINUTE - now
            times.append(now)
            return 0.0


_rate = Rate()


def count() -> None:
    """Counts something new that the present visitor asked for.

    Raises:
        LaterError: it is too much for one minute; nothing is lost, and the same request succeeds later.
    """
    most = Bounds.from_environment().per_minute
    if math.isinf(most):
        return
    if wait := _rate.take(session.browser(), most):
        log("refused", why="rate")
        raise LaterError(
            f"You have asked for {most:g} new translations within a minute, as many as this server makes for "
            f"one visitor. What you typed stays: press Translate in {math.ceil(wait)} s."
        )


def log(event: str, **values: object) -> None:
    """Writes one line of JSON on a hosted instance; never a text, an address or a name of a visitor."""
    if is_hosted():
        told = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **values}
        print(json.dumps(told), flush=True)
        if place := os.environ.get(METRICS, "").strip():
            from ui.server.hosting import metrics  # only here: its library would slow down each start

            metrics.opened(place).hear(event, **values)
