"""Views of one run: measures beside the weight, inside a head, parts of the model, words, alignment
links.

The measures of docs/measures.md are names of this package:

    from explorer import lenses
    from transformer import Capture, load_translator
    translator = load_translator("assets/models/en-pt")
    t = translator.translate("The old house is not for sale.", capture=Capture(residual=True))
    lenses.effect(translator, t, "cross", layer=5, head=1, rows=[3])

Arguments count from 0. A name is imported when it is first asked for (PEP 562): some rooms need no
PyTorch.
"""

from importlib import import_module
from typing import Any

_MODULES = {
    "measures.attribution": "Attribution Shares alti attribution by_key",
    "measures.effect": "Cut Effects effect on_difference rewired key_words word_effect",
    "measures.stream": "ScoreParts UnmeasuredError Writer score_parts "
    "Carried carried carried_together value_zeroing",
    "what_if.two_runs": "compare_runs",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
