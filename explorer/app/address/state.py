"""The visitor's state, as one value. Programs count from 0; the address, for people, from 1."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

from explorer.app.address.change_list import CHANGES, SWITCHED_OFF, Off
from explorer.app.address.kinds import (
    DECODE,
    GOLD_PAIR,
    HEAD,
    HIDDEN,
    LANGUAGE,
    LESSON,
    LINE,
    LINKS,
    PAIRS,
    POSITION,
    SENTENCE,
    TEXT,
    YES,
    HandLinks,
    Kind,
    decimal,
    one_of,
    whole,
)
from explorer.app.address.sitemap import VIEWS
from explorer.figures.base.captions import MEASURES
from explorer.figures.base.style import SCALES
from transformer.config import Head
from transformer.interventions import Intervention

ORDERS = (
    *(
        "entropy",
        "mean_distance",
        "previous_mass",
        "same_mass",
        "next_mass",
        "first_mass",
        "eos_mass",
    ),
    *("contribution", "aer"),
)
"""Statistics that can order and colour a grid of heads."""


@dataclass(frozen=True)
class Key:
    """A value of an address: how it is written, and where it counts."""

    kind: Kind
    default: Any = None  # what an address leaves out; None lets the app choose
    place: bool = (
        False  # whether it belongs to models of one sort: a page of another sort has its own
    )
    long: bool = False  # whether it may be too long for an address


KEYS: dict[str, Key] = {}
"""Every value that an address may hold, by name, as far as it is known; another visitor may add
some."""
DECLARED: dict[str, Key] = {}
"""The values that one page alone reads, as the pages that were opened so far declare them."""


def page_value(
    name: str, kind: Kind, default: Any = None, place: bool = False, long: bool = False
) -> None:
    """Declares a value that one page alone reads, as `State.NAME`; the page calls this before it
    opens."""
    KEYS[name] = DECLARED[name] = Key(kind, default, place, long)


class UnservedError(Exception):
    """A page's script has come to the line that opens it, where no app serves it."""


def shared(kind: Kind, default: Any = None, place: bool = False, long: bool = False) -> Any:
    return field(default=default, metadata={"key": Key(kind, default, place, long)})


@dataclass(frozen=True)
class State:
    """Everything that an address carries; positions, layers and heads count from 0; None: the app
    chooses."""

    text: str | None = shared(LINE, long=True)  # the text: a sentence, or several
    # which of its sentences is shown; `AS_ONE` for all of them as one run, None for the first
    sentence: int | None = shared(SENTENCE)
    model: str | None = shared(TEXT, place=True)  # the name of the model
    view: str | None = shared(one_of(*VIEWS))  # the section of a page, or its way of drawing
    # the attention kind shown by a page that offers all three: encoder, decoder or cross
    kind: str | None = shared(one_of("encoder", "decoder", "cross"))
    # the target language, such as `>>fra<<`, for a model with several
    language: str | None = shared(LANGUAGE)
    step: int | None = shared(POSITION, place=True)  # the decode step
    source: int | None = shared(POSITION, place=True)  # the source token that was clicked
    encoder: Head | None = shared(HEAD, place=True)  # the chosen head of encoder self-attention
    decoder: Head | None = shared(
        HEAD, place=True
    )  # the chosen head of masked decoder self-attention
    cross: Head | None = shared(HEAD, place=True)  # the chosen head of cross-attention
    decode: str = shared(DECODE, "greedy")  # `greedy`, `beam-4`, `sample-7`
    target: str | None = shared(LINE, place=True, long=True)  # the visitor's own translation
    # what is changed in the run of the model, in the order of acting
    changes: tuple[Intervention, ...] = shared(CHANGES, (), place=True)
    # changes that are switched off, each with its place in the list: `2.hide_3` stands second
    off: Off = shared(SWITCHED_OFF, (), place=True)
    order: str | None = shared(
        one_of(*ORDERS)
    )  # the statistic by which the grids of heads are ordered
    words: bool = shared(YES, False)  # whether sub-words are merged into words
    hide: tuple[str, ...] = shared(HIDDEN, ())  # what the maps leave out, from `HIDEABLE`
    # whether decoder rows are named by the token `read` or `predicted`; None for the kind's default
    rows: str | None = shared(one_of("read", "predicted"))
    scale: str = shared(
        one_of(*SCALES), "linear"
    )  # how weights become colours: `linear`, `sqrt`, `log`
    window: int = shared(one_of(64, 32, 16), 64)  # most rows and columns that a map shows
    # how the page of an attention kind draws a head: `matrix`, `lines`, `strongest`
    show: str = shared(one_of("matrix", "lines", "strongest"), "matrix")
    # what the cells of the maps say: weights, what they carried, or what they did
    measure: str = shared(one_of(*MEASURES), "weight")
    # whether target tokens are shaded by how much of them comes from the source
    shares: bool = shared(YES, False)
    lesson: tuple[str, int] | None = shared(LESSON)  # the lesson that is open, and its step
    # which lines are drawn: `mass-70`, the links that carry 70 % of each row; `weight-10`, those of
    # at least 0.10
    links: str = shared(LINKS, "mass-70")
    color: str | None = shared(one_of(*ORDERS))  # the statistic that colours the grids of heads
    pairs: HandLinks = shared(PAIRS, frozenset())  # word links made by hand
    # source of those links, such as `sample-3`; None if the visitor drew them
    gold: str | None = shared(GOLD_PAIR)
    temperature: float = shared(decimal(0.1, 3.0, 0.1), 0.8)  # the temperature of sampling
    # how many of the most probable tokens sampling draws from; None for all
    top_k: int | None = shared(whole(1, 1_000))
    # what the probabilities of these tokens must reach together; None for all tokens
    top_p: float | None = shared(decimal(0.05, 1.0, 0.05))
    prompt: str | None = shared(LINE, place=True, long=True)  # the text of a language model
    page_values: tuple[
        tuple[str, Any], ...
    ] = ()  # what the page reads alone, by name, if it is not the usual value

    def __getattr__(self, name: str) -> Any:
        """A value that the page on the screen has declared; AttributeError if none has."""
        if name not in DECLARED:
            raise AttributeError(name)
        return dict(self.page_values).get(name, DECLARED[name].default)


SHARED: dict[str, Key] = {
    each.name: each.metadata["key"] for each in fields(State) if each.metadata
}
KEYS |= SHARED


HERE = ("view", "kind")
"""Values of every page that no link takes along."""


def places() -> tuple[str, ...]:
    """Values that belong to models of one sort: a page of another sort has its own."""
    return tuple(name for name, key in list(KEYS.items()) if key.place)


def elsewhere(state: State) -> State:
    """The state with which another page opens: values that one page alone reads are left out."""
    return replace(state, page_values=(), view=None, kind=None)


def changed(state: State, **values: Any) -> State:
    """The state with other values; another text opens at its first sentence."""
    fresh = {"sentence": None} if values.get("text", state.text) != state.text else {}
    page = dict(state.page_values) | {
        name: value for name, value in values.items() if name in DECLARED
    }
    every = {name: value for name, value in values.items() if name not in DECLARED}
    held = tuple(
        (name, page[name]) for name in sorted(page) if page[name] != DECLARED[name].default
    )
    none = [name for name, value in every.items() if name not in SHARED and value is None]
    for name in none:  # of a page that nobody has opened yet
        del every[name]
    return replace(state, page_values=held, **{**fresh, **every})
