"""A text as its sentences, by the marks of its script. No language is asked for: the rules are those of many.

A mark ends a sentence if white space follows, after quotes and brackets that close, and what comes next may
begin one: no small letter, no comma. The full stops of Chinese and Japanese need no white space. After an
abbreviation, an initial or an ordinal, a full stop ends nothing; a line break is white space like any other.
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
    rf"(?P<marks>[{re.escape(_MARKS)}]+|(?<=[\u0370-\u03ff\u1f00-\u1fff])[;\u037e])"
    rf"[{re.escape(_CLOSING)}]*(?P<space>\s+)|[{re.escape(_WIDE)}]+[{re.escape(_CLOSED)}]*(?P<wide>\s*)"
)
_NEXT = re.compile(rf"[{re.escape(_OPENING)}\s]*(.?)", re.DOTALL)
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
    parts, start = list[str](), 0
    for end in _END.finditer(text):
        if text[end.end() :].strip() and text[start : end.start()].strip() and _ends(text, start, end):
            parts.append(text[start : end.end()])
            start = end.end()
    return (*parts, text[start:]) if text else ()


def sentences(
    text: str,
    says: str = "",  # what the text begins with to say what to do, such as a language
) -> tuple[str, ...]:
    """The sentences without the white space around them, each after that; none of a blank text."""
    parts = (each.strip() for each in split(text[len(says) :]))
    return tuple(f"{says.strip()} {each}" if says else each for each in parts if each)


def joined(sentences: Iterable[str]) -> str:
    """Sentences as one line of text, with spaces where their script has them."""
    line = ""
    for each in filter(None, (" ".join(sentence.split()) for sentence in sentences)):
        line += each if not line or line.rstrip(_CLOSING).endswith(tuple(_WIDE)) else f" {each}"
    return line


def _ends(text: str, start: int, end: re.Match[str]) -> bool:
    """Whether a mark ends the sentence that begins at ``start``."""
    found = _NEXT.match(text, end.end())
    following = found[1] if found else ""
    if following.islower() or following in {*",;:.!?…%&/=", *_WIDE, "、", "，"}:
        return False
    if end["marks"] is None:
        closed = end[0].rstrip()[-1] in _CLOSING
        return bool(end["wide"]) or not (closed or (end[0][-1] == "．" and following.isdigit()))
    return end["marks"] != "." or not _goes_on(text[start : end.start()], text[end.end() :].split()[0])


def _goes_on(before: str, following: str) -> bool:
    """Whether the full stop after ``before`` belongs to an abbreviation, an initial or a number."""
    *others, last = before.split()
    previous, last = others[-1] if others else "", last.lstrip(_OPENING)
    if _ABBREVIATION.fullmatch(last):
        return True
    if _DOTTED.fullmatch(last):
        return not _TIME.fullmatch(last) or following[0].isdigit()
    if len(last) == 1 and last.isalpha() and last.isascii():
        return not (last == "I" and previous.islower())
    if last.isdecimal() and len(last) <= 2:
        return not others or bool(_ORDINAL.fullmatch(previous) or _MONTH.fullmatch(following))
    return False
