"""A text as its sentences, by the marks of its script. No language is asked for: the rules are
those of many.

A mark ends a sentence if white space follows, after quotes and brackets that close, and what comes
next may begin one: no small letter, no comma. The full stops of Chinese and Japanese need no white
space. After an abbreviation, an initial or an ordinal, a full stop ends nothing; a line break is
white space like any other.

The time is linear in the length of any text: a run of marks is looked at once, and around a mark
the last two words before it and the next one are.
"""

import re
from collections.abc import Iterable

_MARKS = ".!?…‼⁇⁈⁉‽؟۔।॥։።፧፨။។៕"
_WIDE = "。！？｡．"
"""Marks that no white space follows."""
_CLOSING = "\"'”’»›“‘)]}」』】〉》）］"
_CLOSED = _CLOSING.replace("“", "").replace("‘", "")
"""The same where no space tells whether a quote opens or, as in German, closes."""
_OPENING = "\"'“”‘’„‚«»‹›([{¿¡—–-「『【〈《（［"
_END = re.compile(
    rf"(?P<marks>(?<![{re.escape(_MARKS)}])[{re.escape(_MARKS)}]++"
    r"|(?<=[\u0370-\u03ff\u1f00-\u1fff])[;\u037e])"
    rf"[{re.escape(_CLOSING)}]*+(?P<space>\s+)|[{re.escape(_WIDE)}]+[{re.escape(_CLOSED)}]*(?P<wide>\s*)"
)
"""The end of a sentence; a run of marks is read from its first one, and never again from a later
one."""
_NEXT = re.compile(rf"[{re.escape(_OPENING)}\s]*(.?)", re.DOTALL)
_WORD = re.compile(r"\S+")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")
_ABBREVIATION = re.compile(
    r"mr|mrs|ms|dr|prof|rev|hon|gen|col|capt|cpt|lt|sgt|st|sr|sra|jr|dra|srta|exmo|exma|mme|mlle|hr|fr|dipl|ing"
    r"|no|nos|nr|núm|num|figs?|vols?|pp|arts?|ch|chap|sec|eq|al|vs|cf|ca|approx|esp|incl|inkl|exkl|evtl|ggf|bzw|vgl"
    r"|sog|bspw|max|min|tel|abb|kap|bd|hrsg|ed|eds|págs?|caps?|av|lda|им|рис|стр|тов|проф",
    re.IGNORECASE,
)
"""Abbreviations after which a sentence goes on, whatever comes next."""
_TIME = re.compile(r"a\.m|p\.m|[ab]\.c|d\.c", re.IGNORECASE)
"""Abbreviations with dots inside that may end a sentence."""
_MONTH = re.compile(
    r"(januar|january|februar|february|märz|march|april|ma[iy]|jun[ie]|jul[iy]|august|september|o[kc]tober|november|de[zc]ember)"
    r"\W*",
    re.IGNORECASE,
)
_ORDINAL = re.compile(
    r"d(er|ie|as|en|em|es)|a[mb]|vom|im|zu[mr]|beim|bis|seit|jede[rnm]|diese[rnm]", re.IGNORECASE
)
"""Words before a German ordinal."""


def split(text: str) -> tuple[str, ...]:
    """The sentences of a text, each with the white space after it: joined, they are the text.

    None is empty or blank, unless the whole text is blank.
    """
    parts = list[str]()
    start = 0
    last = len(text.rstrip())
    word = _WORD.search(text)  # the first one of the sentence
    for end in _END.finditer(text):
        if end.end() >= last or word is None:
            break
        if word.start() < end.start() and _ends(text, start, end):
            parts.append(text[start : end.end()])
            start = end.end()
            word = _WORD.search(text, start)
    return (*parts, text[start:]) if text else ()


def sentences(
    text: str,
    says: str = "",  # what the text begins with to say what to do, such as a language
) -> tuple[str, ...]:
    """The sentences without the white space around them, each after that; none of a blank text."""
    parts = (each.strip() for each in split(text[len(says) :]))
    return tuple(f"{says.strip()} {part}" if says else part for part in parts if part)


def joined(sentences: Iterable[str]) -> str:
    """Sentences as one line of text, with spaces where their script has them."""
    parts = list[str]()
    is_wide = False  # whether no space follows what stands so far
    for sentence in sentences:
        words = " ".join(sentence.split())
        if not words:
            continue
        parts.append(words if is_wide or not parts else f" {words}")
        if bare := words.rstrip(_CLOSING):
            is_wide = bare.endswith(tuple(_WIDE))
    return "".join(parts)


def _ends(text: str, start: int, end: re.Match[str]) -> bool:
    """Whether a mark ends the sentence that begins at ``start``."""
    found = _NEXT.match(text, end.end())
    following = found[1] if found else ""
    if following.islower() or following in {*",;:.!?…%&/=", *_WIDE, "、", "，"}:
        return False
    if end["marks"] is None:
        closed = end[0].rstrip()[-1] in _CLOSING
        return bool(end["wide"]) or not (closed or (end[0][-1] == "．" and following.isdigit()))
    if end["marks"] != ".":
        return True
    first, stop = _last_word(text, start, end.start())
    previous = text[slice(*_last_word(text, start, first))]
    word = _WORD.search(text, end.end())
    return word is None or not _goes_on(previous, text[first:stop], word[0])


def _last_word(text: str, start: int, stop: int) -> tuple[int, int]:
    """Where the last word between two places begins and ends; an empty stretch if there is none."""
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    first = stop
    while first > start and not text[first - 1].isspace():
        first -= 1
    return first, stop


def _goes_on(previous: str, last: str, following: str) -> bool:
    """Whether the full stop after ``last`` belongs to an abbreviation, an initial or a number.

    ``previous`` is the word before it in the sentence, empty if there is none; ``following`` the
    next one.
    """
    last = last.lstrip(_OPENING)
    if _ABBREVIATION.fullmatch(last):
        return True
    if _DOTTED.fullmatch(last):
        return not _TIME.fullmatch(last) or following[0].isdigit()
    if len(last) == 1 and last.isalpha() and last.isascii():
        return not (last == "I" and previous.islower())
    if last.isdecimal() and len(last) <= 2:
        return not previous or bool(_ORDINAL.fullmatch(previous) or _MONTH.fullmatch(following))
    return False
