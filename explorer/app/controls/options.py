"""The options of the choices: what can be chosen, and the text of each, in their order on the page.

Streamlit knows a chosen option by its text alone. So a text says nothing that a step, a key or
another choice changes; such a number stands beside the choice. `session.control` renews a widget
whose texts have changed.
"""

from collections.abc import Iterable, Sequence

from explorer.figures.base import labels
from transformer.config import Head

METHODS = {"greedy": "greedy", "beam-4": "beam, 4 hypotheses", "sample-1": "sampling"}
"""The ways of decoding that every visitor is offered."""
_KEY_ROOM = 20


def heads(
    size: Head,  # number of layers and of heads
    first: Head,  # the head that opens first
    roles: Sequence[Sequence[str]] = (),  # of every head, by layer; empty where none is known
) -> dict[Head, str]:
    """The heads of a kind, each with what it does over many sentences."""
    options = [(layer, head) for layer in range(size[0]) for head in range(size[1])]
    role = {(i, j): name for i, layer in enumerate(roles) for j, name in enumerate(layer)}
    notes = {
        option: (
            labels.head_name(*option),
            role.get(option),
            ("default" if option == first else ""),
        )
        for option in options
    }
    return {each: " · ".join(filter(None, parts)) for each, parts in notes.items()}


def numbered(
    texts: Iterable[str],  # what is chosen from: rows, sentences, pairs
    room: int = 100,  # letters that are shown of each
) -> dict[int, str]:
    """Texts by their places, with their numbers, since one may occur twice."""
    return {i: f"{labels.count(i)} · {labels.shorten(text, room)}" for i, text in enumerate(texts)}


def keys(tokens: Sequence[str]) -> dict[int, str]:
    """The keys of a query; a key's weight belongs to the query, so it is not part of the text."""
    names = labels.names(tokens, _KEY_ROOM)
    return {i: f"key {labels.count(i)}: {name}" for i, name in enumerate(names)}


def words(texts: Iterable[str]) -> dict[int, str]:
    """The words of a sentence, numbered, since a word may occur twice."""
    return {i: f"{labels.count(i)}: {text}" for i, text in enumerate(texts)}
