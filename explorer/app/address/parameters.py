"""The parameters of an address that carry a state."""

from collections.abc import Mapping
from urllib.parse import quote

from explorer.app.address.state import KEYS, State, changed, elsewhere

LONGEST_LINK = 4_000
"""Most characters that the texts in an address may take, in URL encoding."""
KEEP = {"keep": "session"}
"""The query of the menu's links: the page opens with the state of this session, which replaces it
at once."""


def parse(
    # every value of every parameter; if a parameter is repeated, the last value counts
    params: Mapping[str, list[str]],
) -> tuple[State, list[str]]:
    """Reads a state out of an address.

    Returns:
        The state, and the names of the parameters that could not be read as they are.
    """
    values = {}
    unreadable = []
    for name, key in KEYS.items():
        texts = params.get(name) or []
        kind = key.kind
        if not texts:
            continue
        try:
            values[name] = kind.read(texts[-1])
            as_it_is = not kind.ends or values[name] == float(texts[-1])
        except ValueError:
            as_it_is = False
        if len(texts) > 1 or not as_it_is:
            unreadable.append(name)
    return changed(State(), **values), unreadable


def carried(state: State) -> bool:
    """Whether an address can carry the texts of this state: proxies cut longer addresses."""
    long = (state.value(name) or "" for name, key in KEYS.items() if key.long)
    return sum(len(quote(text, safe="", errors="replace")) for text in long) <= LONGEST_LINK


def as_params(state: State) -> dict[str, str]:
    """Writes a state as parameters of an address; texts that are too long are left out."""
    fits = carried(state)
    values = ((name, key, state.value(name)) for name, key in KEYS.items() if fits or not key.long)
    return {
        name: key.kind.write(value)
        for name, key, value in values
        if value not in (None, key.default)
    }


def link(
    state: State,  # what is shown here
    **values: object,  # what the other page shows instead
) -> dict[str, str]:
    """The parameters of a link to another page, so that it opens with the same state."""
    return as_params(changed(elsewhere(state), **values))
