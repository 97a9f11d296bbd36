"""Texts that somebody types to hold a server up: the time to clean and to split each, for two
lengths."""

import statistics
from collections.abc import Callable
from functools import partial

from benchmarks.timing import Repeats, interleaved
from transformer.text.sentences import joined, split
from transformer.text.typed import clean

LENGTH = 100_000
"""Characters of a text."""
HOSTILE = {
    "dots": ".",
    "ellipses": "…",
    "dots in brackets": ".)",
    "dots alone": ". ",
    "abbreviations": "Mr. ",
    "ordinals": "12. ",
    "quotes after dots": '. "«',
    "wide stops": "。",
    "blanks": ".\n\n\n",
    "joined emoji": "👩\u200d",
    "joined letters": "a\u200d",
    "marks out of order": "\u0301\u0323",
}
"""What each kind repeats."""


def made(kind: str, length: int) -> str:
    """A text of a kind."""
    unit = HOSTILE[kind]
    return (unit * (length // len(unit) + 1))[:length]


def _parted(text: str) -> None:
    joined(split(text))


def hostile(*, repeats: Repeats = 5) -> int:
    """Milliseconds to clean a hostile text and to split it, and the ratio to one of a tenth of its
    length."""
    for kind in HOSTILE:
        long = made(kind, LENGTH)
        short = made(kind, LENGTH // 10)
        runs: dict[str, Callable[[], object]] = {
            "clean": partial(clean, long),
            "split": partial(_parted, long),
            "clean, short": partial(clean, short),
            "split, short": partial(_parted, short),
        }
        times = {
            name: statistics.median(seconds)
            for name, seconds in interleaved(runs, repeats, 1).items()
        }
        shares = [
            f"{does} {1000 * times[does]:.0f} ms ({times[does] / times[f'{does}, short']:.1f} ×)"
            for does in ("clean", "split")
        ]
        print(f"{kind}: {', '.join(shares)}", flush=True)
    return 0
