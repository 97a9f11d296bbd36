"""Regular expressions of a stranger: which of them may take for ever on a short text."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_REPEATS = 3
"""Repeats without a bound within one choice: each may multiply the time by the length of a text."""
MOST_WAYS = 4096
"""Ways to read one choice, by what may stand there or not: each may multiply the time, too."""
_FEW = 9
"""A repeat of at most so many times multiplies the ways; another one counts as without a bound."""
_TOKEN = re.compile(
    r"(?P<escape>\\[pP]\{[^}]*\}|\\x\{[^}]*\}|\\.)"
    r"|(?P<flags>\(\?[a-zA-Z-]+\))"
    r"|(?P<open>\((?:\?(?:<?[=!]|[:>]|<\w+>|[a-zA-Z-]+:))?)"
    r"|(?P<repeat>[*+?]|\{\d*,?\d*\})"
    r"|(?P<sign>.)",
    re.DOTALL,
)
"""What a pattern consists of: escapes, settings, groups that open, repeats, and all else."""
_REFERENCES = "gkKRX123456789"
"""Letters after a backslash that read a group once more, or what nobody knows."""

_SIGNS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


@dataclass
class _Group:
    """A group that is being read."""

    repeats: int = 0  # without a bound, of the choice that is read
    ways: int = 1  # to read this choice
    before: int = 0  # the most repeats of a choice before it
    others: int = 0  # ways to read the choices before it

    def choose(self) -> None:
        """Begins the next choice."""
        self.before = max(self.before, self.repeats)
        self.others = self.others + self.ways
        self.repeats, self.ways = 0, 1


def tries_for_ever(pattern: str) -> bool:
    """True if the time to find out that a pattern does not match may grow too fast with the text.

    It does if what itself repeats or chooses is repeated, a group is referred to, or one choice has
    many repeats or ways. What cannot be told is taken for such a pattern.
    """
    groups = [_Group()]
    varies = False  # whether what stands just before repeats or chooses
    depth, previous = 0, ""  # of classes of characters; the token before
    for match in _TOKEN.finditer(pattern):
        token = match[0]
        varied = varies
        varies = False
        if match["escape"]:
            if not depth and token[1] in _REFERENCES:
                return True
        elif depth or token == "[":
            depth += (token == "[") - (token == "]")
        elif match["flags"] or match["open"]:
            if "x" in token.partition("<")[0] or pattern.startswith("?", match.end()):
                return True  # blanks and comments would have to be read, or a group of another kind
            if match["open"]:
                groups.append(_Group())
        elif token == ")":
            if len(groups) == 1:
                return True
            group = groups.pop()
            group.choose()
            groups[-1].repeats += group.before
            groups[-1].ways *= group.others
            varies = group.before > 0 or group.others > 1
        elif token == "|":
            groups[-1].choose()
        elif match["repeat"]:
            is_mode = (
                previous in ("*", "+", "?") and token in "?+"
            )  # as few as there may be; all or none
            if not is_mode and not _repeat(groups[-1], token, varied):
                return True
            varies = True
        if groups[-1].repeats > MOST_REPEATS or groups[-1].ways > MOST_WAYS:
            return True
        previous = token
    return len(groups) > 1 or depth > 0


def _repeat(group: _Group, token: str, varied: bool) -> bool:
    """Counts a repeat in its group; False if it repeats what itself varies."""
    low, high = _bounds(token)
    if varied and (high is None or high > 1):
        return False
    if high is None or high > _FEW:
        group.repeats += 1
    else:
        group.ways *= 1 + max(0, high - low)
    return True


def _bounds(repeat: str) -> tuple[int, int | None]:
    """The fewest times that something is repeated, and the most; None without a bound."""
    if repeat in _SIGNS:
        return _SIGNS[repeat]
    least, comma, most = repeat.strip("{}").partition(",")
    low = int(least[:9] or 0)
    if not comma:
        return low, low
    return low, int(most[:9]) if most else None
