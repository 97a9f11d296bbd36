"""Views of one run: measures beside the weight, inside a head, parts of the model, words, alignment links.

The measures of docs/measures.md are names of this package:

    from explorer import lenses
    from transformer import Capture, load_translator
    translator = load_translator("assets/models/en-pt")
    t = translator.translate("The old house is not for sale.", capture=Capture(residual=True))
    lenses.effect(translator, t, "cross", layer=5, head=1, rows=[3])

Arguments count from 0. A name is imported when it is first asked for (PEP 562): some rooms need no PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explorer.lenses.measures.attribution import (
        Attribution,
        Saliency,
        Shares,
        alti,
        attribution,
        by_source,
        rollout,
        saliency,
    )
    from explorer.lenses.measures.carried import Carried, carried, carried_together, value_zeroing
    from explorer.lenses.measures.effect import (
        Cut,
        Effects,
        effect,
        on_difference,
        rewired,
        source_words,
        word_effect,
    )
    from explorer.lenses.measures.stream import ScoreParts, UnmeasuredError, Writer, score_parts
    from explorer.lenses.what_if.two_runs import compare_runs

__all__ = [
    "Attribution",
    "Carried",
    "Cut",
    "Effects",
    "Saliency",
    "ScoreParts",
    "Shares",
    "UnmeasuredError",
    "Writer",
    "alti",
    "attribution",
    "by_source",
    "carried",
    "carried_together",
    "compare_runs",
    "effect",
    "on_difference",
    "rewired",
    "rollout",
    "saliency",
    "score_parts",
    "source_words",
    "value_zeroing",
    "word_effect",
]

_MODULES = {
    "measures.attribution": (
        *("Attribution", "Saliency", "Shares", "alti", "attribution", "by_source", "rollout", "saliency"),
    ),
    "measures.carried": ("Carried", "carried", "carried_together", "value_zeroing"),
    "measures.effect": (
        *("Cut", "Effects", "effect", "on_difference", "rewired", "source_words", "word_effect"),
    ),
    "measures.stream": ("ScoreParts", "UnmeasuredError", "Writer", "score_parts"),
    "what_if.two_runs": ("compare_runs",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
"""The module of each name of ``__all__``."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
