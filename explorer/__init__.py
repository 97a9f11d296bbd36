"""What makes a run something to look at: lenses, figures, the linked view, and the app.

    from explorer import page, show
    from transformer import load_translator
    translator = load_translator("assets/models/en-pt")
    t = translator.translate("The old house is not for sale.")
    show(t, translator)                                  # in a notebook
    Path("run.html").write_text(page(t, translator), encoding="utf-8")

A name is imported when it is first asked for (PEP 562): `explorer.figures` needs no PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explorer.linked.living.notebook import Shown, show
    from explorer.linked.living.page import PageError, page

_HOMES = {"PageError": "page", "Shown": "notebook", "page": "page", "show": "notebook"}
__all__ = ["PageError", "Shown", "page", "show"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'explorer' has no attribute {name!r}")
    return getattr(import_module(f"explorer.linked.living.{_HOMES[name]}"), name)
