"""Fits a state to the model and the translation: chooses the nearest valid values, and names each
change."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from explorer.app.address import State, session
from explorer.app.server.source import FILE, Source
from explorer.figures.base import labels
from explorer.linked.view.events import several
from transformer.config import Head
from transformer.run import Translation

Say = Callable[[str], object]
"""Hears in a sentence what was changed."""


def fit_model(
    wanted: str | None,  # the name in the state, or None
    names: Iterable[str],  # the models there are, the default first
    say: Say = session.notice,
) -> str:
    """The model to open; a path is not a name."""
    known = list(names)
    if wanted in known:
        return str(wanted)
    if wanted is not None and wanted.startswith(FILE):
        say(
            f"The file that the address names is not open, so {known[0]} is shown. Open the file "
            "again."
        )
    elif wanted is not None:
        say(f"The model that the address names is not here, so {known[0]} is shown.")
    return known[0]


def fit_head(
    kind: str,  # encoder, decoder or cross
    wanted: Head | None,  # layer and head in the state (from 0), or None
    size: Head,  # number of layers and of heads
    default: Head,  # the head that opens first
    say: Say = lambda note: None,
) -> Head:
    """The head to open; another one if the model lacks the head asked for."""
    if wanted is None:
        return default
    nearest = min(wanted[0], size[0] - 1), min(wanted[1], size[1] - 1)
    if nearest != wanted:
        n_layers, n_heads = size
        layers = f"{labels.counted(n_layers, 'layer')} of {labels.counted(n_heads, 'head')}"
        say(f"This model has {layers}; {kind} shows {labels.head_phrase(*nearest)}.")
    return nearest


def fit_heads(
    now: State,
    source: Source,  # the model, or the open file
    first: Mapping[str, Head] = MappingProxyType(
        {}
    ),  # the heads that open first instead of the model's own
) -> dict[str, Head]:
    """`fit_head` for every kind of a model, with a notice."""
    opens = {**source.default_heads, **first}
    return {
        kind: fit_head(kind, getattr(now, kind), size, opens[kind], session.notice)
        for kind, size in source.sizes.items()
    }


def fit_chosen(now: State, run: Translation) -> dict[str, object]:
    """The tokens that are looked at together, inside a run; of each side, the cursor is at one."""
    fitting: dict[str, object] = {}
    lengths = {"step": len(run.target_tokens), "source": len(run.source_tokens)}
    left_out = False
    for at, length in lengths.items():
        wanted = getattr(now, f"{at}s")
        chosen = several(wanted, length)
        left_out |= len(chosen) < len(wanted)
        fitting[f"{at}s"] = chosen
        if chosen and getattr(now, at) not in chosen:
            fitting[at] = chosen[-1]
    if left_out:
        session.notice(
            "Tokens that this text does not have are left out of those looked at as one."
        )
    return fitting


def fit_position(
    what: str, wanted: int | None, length: int, say: Say = session.notice
) -> int | None:
    """A position inside the sentence (from 0); None stays None, and of no tokens there is none."""
    if wanted is None or length == 0:
        return None
    if wanted < length:
        return wanted
    say(f"This sentence has {labels.counted(length, what)}; {what} {length} is shown.")
    return length - 1
