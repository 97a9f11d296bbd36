"""The visitor's state, as one value. Programs count from 0; the address, for people, from 1."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from explorer.app.address.change_list import CHANGES, SWITCHED_OFF, Off
from explorer.app.address.kinds import (
    DECODE,
    GOLD_PAIR,
    HEAD,
    HIDDEN,
    LANGUAGE,
    LESSON,
    LINE,
    LINES,
    LINKS,
    MOST_WRITTEN,
    PAIRS,
    POSITION,
    POSITIONS,
    SENTENCE,
    TEXT,
    USUAL_WRITTEN,
    YES,
    HandLinks,
    Key,
    Moves,
    decimal,
    keys_of,
    one_of,
    parameter,
    whole,
)
from explorer.app.address.page_values import Maps
from explorer.app.address.pages import VALUES, Page
from explorer.app.address.sitemap import VIEWS
from explorer.figures.base.captions import MEASURES
from explorer.figures.base.style import SCALES
from explorer.lenses.words.reading import Rows
from explorer.linked.view.events import Chosen, Cursor, Together
from transformer.config import Head
from transformer.interventions import Intervention

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
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
class State:
    """Everything that an address carries; positions, layers and heads count from 0; None: the app
    chooses."""

    # the text: a sentence or several for a model that reads a source, else what it continues
    text: str | None = parameter(LINES, long=True)
    # which of its sentences is shown; `AS_ONE` for all of them as one run, None for the first
    sentence: int | None = parameter(SENTENCE)
    model: str | None = parameter(TEXT)  # the name of the model
    view: str | None = parameter(one_of(*VIEWS))  # the section of a page, or its way of drawing
    # the attention kind shown by a page that offers all three: encoder, decoder or cross
    kind: str | None = parameter(one_of("encoder", "decoder", "cross"))
    # the target language, such as `>>fra<<`, for a model with several
    language: str | None = parameter(LANGUAGE)
    step: int | None = parameter(POSITION)  # the decode step
    source: int | None = parameter(POSITION)  # the source token that was clicked
    # decode steps, and source tokens, that are looked at as one; the cursor is at one of them
    steps: tuple[int, ...] = parameter(POSITIONS, ())
    sources: tuple[int, ...] = parameter(POSITIONS, ())
    together: Together = parameter(one_of("mean", "sum"), "mean")  # how their rows become one
    encoder: Head | None = parameter(HEAD)  # the chosen head of encoder self-attention
    decoder: Head | None = parameter(HEAD)  # the chosen head of masked decoder self-attention
    cross: Head | None = parameter(HEAD)  # the chosen head of cross-attention
    decode: str = parameter(DECODE, "greedy")  # `greedy`, `beam-4`, `sample-7`
    target: str | None = parameter(LINE, long=True)  # the visitor's own translation
    # what is changed in the run of the model, in the order of acting
    changes: tuple[Intervention, ...] = parameter(CHANGES, ())
    # changes that are switched off, each with its place in the list: `2.hide_3` stands second
    off: Off = parameter(SWITCHED_OFF, ())
    order: str | None = parameter(
        one_of(*ORDERS)
    )  # the statistic by which the grids of heads are ordered
    words: bool = parameter(YES, False)  # whether sub-words are merged into words
    hide: tuple[str, ...] = parameter(HIDDEN, ())  # what the maps leave out, from `HIDEABLE`
    # whether decoder rows are named by the token `read` or `predicted`; None for the kind's default
    rows: Rows | None = parameter(one_of("read", "predicted"))
    scale: str = parameter(
        one_of(*SCALES), "linear"
    )  # how weights become colours: `linear`, `sqrt`, `log`
    window: int = parameter(one_of(64, 32, 16), 64)  # most rows and columns that a map shows
    # how the page of an attention kind draws a head: `matrix`, `lines`, `strongest`
    show: str = parameter(one_of("matrix", "lines", "strongest"), "matrix")
    # what the cells of the maps say: weights, what they carried, or what they did
    measure: str = parameter(one_of(*MEASURES), "weight")
    # whether target tokens are shaded by how much of them comes from the source
    shares: bool = parameter(YES, False)
    lesson: tuple[str, int] | None = parameter(LESSON)  # the lesson that is open, and its step
    # which lines are drawn: `mass-70`, the links that carry 70 % of each row; `weight-10`, those of
    # at least 0.10
    links: str = parameter(LINKS, "mass-70")
    color: str | None = parameter(one_of(*ORDERS))  # the statistic that colours the grids of heads
    pairs: HandLinks = parameter(PAIRS, frozenset())  # word links made by hand
    # source of those links, such as `sample-3`; None if the visitor drew them
    gold: str | None = parameter(GOLD_PAIR)
    temperature: float = parameter(decimal(0.1, 3.0, 0.1), 0.8)  # the temperature of sampling
    # how many of the most probable tokens sampling draws from; None for all
    top_k: int | None = parameter(whole(1, 1_000))
    # what the probabilities of these tokens must reach together; None for all tokens
    top_p: float | None = parameter(decimal(0.05, 1.0, 0.05))
    # how many tokens follow a text that is continued; none if the model only reads it
    write: int = parameter(whole(0, MOST_WRITTEN), USUAL_WRITTEN)
    chat: bool = parameter(YES, False)  # whether the text is what somebody says to a chat model
    # what one page alone reads, by name, if it is not the usual value; see `values`
    page_values: tuple[tuple[str, object], ...] = ()

    def values(self, declared: type[T]) -> T:
        """The values that one page alone reads, as that page declares them."""
        names = keys_of(declared)
        return declared(**{name: value for name, value in self.page_values if name in names})

    def value(self, name: str) -> Any:
        """The value of an address's parameter, whoever reads it; KeyError if nobody does."""
        if name in SHARED:
            return getattr(self, name)
        return dict(self.page_values).get(name, OF_PAGES[name].default)


SHARED = keys_of(State)
"""The values that several pages read, by name."""
OF_PAGES: Mapping[str, Key] = {
    name: key for values in VALUES for name, key in keys_of(values).items()
}
"""The values that one page alone reads, by name."""
KEYS: Mapping[str, Key] = {**SHARED, **OF_PAGES}
"""Every value that an address may hold, by name."""


def read_by(page: Page) -> frozenset[str]:
    """The names of all values that a page reads of an address."""
    alone = (name for values in page.values for name in keys_of(values))
    return frozenset((*SHARED, *keys_of(Maps), *alone))


def cursor_of(state: State) -> Cursor:
    """The visitor's position, with the tokens that are looked at together."""
    chosen = Chosen(state.steps, state.sources, state.together)
    return Cursor(state.step or 0, state.source, chosen=chosen)


HERE = ("view", "kind")
"""Values of every page that no link takes along."""


def elsewhere(state: State) -> State:
    """The state with which another page opens: values that one page alone reads are left out."""
    return replace(state, page_values=(), view=None, kind=None)


def changed(state: State, **values: object) -> State:
    """The state with other values; another text opens at its first sentence, and a cursor that is
    moved is at one token.

    TypeError if no page reads a value of such a name.
    """
    page = dict(state.page_values)
    shared = Moves()
    if values.get("text", state.text) != state.text:
        shared["sentence"] = None
    for at, together in (("step", "steps"), ("source", "sources")):
        if at in values:
            shared[together] = ()
    for name, value in values.items():
        if name in OF_PAGES:
            page[name] = value
        else:
            shared[name] = value
    unusual = {name: page[name] for name in sorted(page) if page[name] != OF_PAGES[name].default}
    return replace(state, page_values=tuple(unusual.items()), **shared)
