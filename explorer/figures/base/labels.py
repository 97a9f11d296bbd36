"""Tokens, positions, layers and heads as people read them, who count from 1 (`count`)."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from transformer.text import words

WORD_START = "▁"
JOINED = "‿"
"""Sign before a piece that begins without a space, as phoneticians write a link without a break."""
SIGNS = {JOINED: "marks letters or digits that begin without a space", "◦": "is a space alone"}
"""What the signs in pieces mean."""
CUT = 12
ROOM = 6.5
"""Widest label of an axis, in multiples of its font size: a word of about twelve letters."""
ROUNDING = 1e-6
"""Differences of weights below this are those of float32."""
PER_CENT = "\N{NO-BREAK SPACE}%"
"""The unit after the number of a percentage; a line never breaks before it."""
_NARROW = frozenset("fijlrtI.,:;!|'()[]/ \N{NO-BREAK SPACE}-")
_BROAD = frozenset("mwMW@%")
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
"""Categories of characters that nobody sees."""
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
"""Translates a number to an exponent."""
_QUOTED_START = re.compile(f"(?<=[“'\"]){WORD_START}(?=[^”'\"])")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "#": "&#35;"})


def count(index: int) -> int:
    """Turns a position, layer or head counted from 0, as in programs, into one counted from 1."""
    return index + 1


def head_name(layer: int, head: int) -> str:
    """The short name of a head, as in tiles and titles: `L3 H5`."""
    return f"L{count(layer)} H{count(head)}"


def head_phrase(layer: int, head: int) -> str:
    """The name of a head inside a sentence: `head 5 of layer 3`."""
    return f"head {count(head)} of layer {count(layer)}"


def aligner(heads: Sequence[tuple[int, int]], rows: str) -> str:
    """Name of an alignment, after “the”: `alignment head (head 2 of layer 1, row that reads)`."""
    verb = "reads" if rows == "read" else "predicts"
    row = f"row that {verb} the word"
    if len(heads) == 1:
        return f"alignment head ({head_phrase(*heads[0])}, {row})"
    first = count(heads[0][0])
    last = count(heads[-1][0])
    if first == last:
        return f"mean over all heads of layer {first} ({row})"
    return f"mean over all heads of layers {first} to {last} ({row})"


def without_starts(text: str) -> str:
    """A sentence whose quoted pieces stand without their `▁`, as people read them."""
    return _QUOTED_START.sub("", text)


def number(value: float, form: str = ".2f") -> str:
    """A number with a true minus sign, which is as wide as a plus and breaks no line.

    A zero has no sign.
    """
    text = format(value, form)
    if not text.strip("+-0.%"):
        return text.lstrip("+-")
    return text.replace("-", "−")


def times(nats: float) -> str:
    """A difference of log-probabilities as a factor, such as `180,000 times less probable`.

    It is empty if the factor is below 1.1.
    """
    factor = math.exp(min(abs(nats), 700))
    if factor < 1.1:
        return ""
    direction = "less" if nats < 0 else "more"
    return f"{_factor(factor)} times {direction} probable"


def _factor(factor: float) -> str:
    """A factor from 1 up with two digits that count."""
    if factor < 10:
        return f"{factor:.1f}"
    if factor < 1e9:
        return f"{round(factor, 1 - math.floor(math.log10(factor))):,.0f}"
    return scientific(factor)


def signs(tokens: Iterable[str]) -> str:
    """What the signs mean that stand in some pieces, in a sentence; empty if none does."""
    text = "".join(pieces(list(dict.fromkeys(tokens))))
    meanings = "; ".join(f"“{sign}” {means}" for sign, means in SIGNS.items() if sign in text)
    return meanings and f"{meanings}."


def scientific(value: float) -> str:
    """A number as one digit with a decimal and a power of ten: `5.4 × 10⁻¹⁵`."""
    if not value:
        return "0"
    digits, _, power = format(value, ".1e").partition("e")
    return f"{digits.replace('-', '−')} × 10{str(int(power)).translate(RAISED)}"


def telling(value: float) -> str:
    """A weight with two digits after the point, or as many as its first digit needs.

    What is no more than rounding is "0".
    """
    if value < ROUNDING:
        return "0"
    digits = 2
    if value < 0.005:
        digits = -math.floor(math.log10(value))
    return f"{value:.{digits}f}"


def percent(share: float) -> str:
    """Writes a share from 0 to 1 as a percentage: `37 %`, `0.4 %`, `<0.1 %`."""
    value = 100 * share
    if 0 < value < 0.1:
        return f"<0.1{PER_CENT}"
    if 99.5 <= value < 100 and share < 1:
        return f"{math.floor(10 * value) / 10:g}{PER_CENT}"
    digits = 1 if 0 < value < 1 else 0
    return f"{value:.{digits}f}{PER_CENT}"


def chance(log_prob: float) -> str:
    """A probability by its logarithm, as `percent` writes it; a dash if it is not known."""
    if math.isnan(log_prob):
        return "–"
    return percent(min(1.0, math.exp(log_prob)))


def moved(value: float) -> str:
    """A difference with its sign and as many digits as `telling` gives it; "not known" for NaN."""
    if math.isnan(value):
        return "not known"
    if abs(value) < ROUNDING:
        return telling(abs(value))
    sign = "+" if value > 0 else "−"
    return sign + telling(abs(value))


def escape(text: str) -> str:
    """Escapes what Plotly reads as markup (`& < >`) and `#`, Streamlit's mark for colours."""
    return text.translate(_ESCAPES)


def bold(text: str, emphasised: bool = True) -> str:
    """A text in Plotly's markup, bold if it is emphasised."""
    return f"<b>{text}</b>" if emphasised else text


@lru_cache(4096, typed=True)
def display(token: str) -> str:
    """Writes a piece for people: bytes as characters, what cannot be seen as `◦`, `◌` or a code."""
    if words.is_special(token):
        return str(token)
    if (unknown := words.unknown_text(token)) is not None:
        return f"<unk> {unknown}"
    if words.BYTE_PIECE.search(token):
        return " ".join(
            words.BYTE_PIECE.sub(words.byte_text, token.removeprefix(WORD_START)).split()
        )
    if not token:
        return "◌"
    text = token.removeprefix(WORD_START)
    if not text:
        return "◦"
    if text.isspace():
        return "◦" * len(text)
    return "".join(map(_visible, text.replace(WORD_START, "◦")))


def _visible(letter: str) -> str:
    """A character, or the code of one that nobody sees."""
    return f"U+{ord(letter):04X}" if unicodedata.category(letter) in _UNSEEN else letter


@lru_cache(4096, typed=True)
def piece(token: str) -> str:
    """As `display`; a digit, or a letter of a script with cases, is marked without a space."""
    first = token[:1]
    joined = not words.is_special(token) and (first.isdigit() or first.lower() != first.upper())
    return JOINED * joined + display(token)


def pieces(tokens: Sequence[str]) -> list[str]:
    """Writes the tokens of a sequence; marks none if they are words, and never the first one."""
    spaced = any(token.startswith(WORD_START) for token in tokens)
    write = piece if spaced else display
    return [*map(display, tokens[:1]), *map(write, tokens[1:])]


@lru_cache(4096)
def shorten(text: str, limit: int = CUT) -> str:
    """Cuts a text after `limit` characters and marks the cut with an ellipsis."""
    if len(text) <= limit:
        return text
    return text[:limit] + "…"


def short(token: str, limit: int = CUT) -> str:
    """A token of a vocabulary as it stands in a figure: cut and escaped."""
    return escape(shorten(piece(token), limit))


@lru_cache(4096)
def width(text: str) -> float:
    """Approximate width of a text in the app's font, in multiples of the font size."""
    total = 0.0
    for letter in text:
        if letter in _NARROW:
            total += 0.34
        elif letter in _BROAD:
            total += 0.82
        elif letter in "…—" or unicodedata.east_asian_width(letter) in "WF":
            total += 1.0
        elif not unicodedata.category(letter).startswith("M"):
            total += 0.66 if letter.isupper() else 0.55
    return total


def fitted(text: str, room: float) -> str:
    """Cuts a text so that, ellipsis included, it is no wider than `room` times the font size."""
    if width(text) <= room:
        return text
    length = 0
    while width(text[: length + 1]) + width("…") <= room:
        length += 1
    return text[:length] + "…"


def counted(number: int, noun: str) -> str:
    """A number with its noun, which gets an s unless it is one: "1 layer", "2 layers"."""
    ending = "" if number == 1 else "s"
    return f"{number} {noun}{ending}"


def occurrences(tokens: Sequence[str]) -> list[int | None]:
    """Numbers repeated tokens from 1 in reading order; a token that occurs once gets None."""
    texts = pieces(tokens)
    totals = Counter(texts)
    seen = Counter[str]()
    numbers: list[int | None] = []
    for text in texts:
        seen[text] += 1
        numbers.append(seen[text] if totals[text] > 1 else None)
    return numbers


def names(tokens: Sequence[str], room: float | None = None) -> list[str]:
    """Unescaped names of tokens; repeated tokens get a small index: `die₁ … die₂`.

    They are cut to `room`, in multiples of the font size, if it is given.
    """
    result = []
    for text, number in zip(pieces(tokens), occurrences(tokens), strict=True):
        index = "" if number is None else str(number).translate(_SUBSCRIPTS)
        if room is not None:
            text = fitted(text, room - width(index))
        result.append(text + index)
    return result


def row_names(query_tokens: Sequence[str], predicted_tokens: Sequence[str] | None) -> list[str]:
    """Names of rows in words: the query, or for decoder rows the tokens read and predicted."""
    read = names(query_tokens)
    if predicted_tokens is None:
        return [f"query {name}" for name in read]
    return [f"reads {a}, predicts {b}" for a, b in zip(read, names(predicted_tokens), strict=True)]
