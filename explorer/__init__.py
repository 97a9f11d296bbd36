"""What makes a run something to look at: lenses, figures, the linked view, and the app.

    from explorer import live, page, show
    from transformer import load_translator

    translator = load_translator("assets/models/en-pt")
    t = translator.translate("The old house is not for sale.")
    show(t, translator)                                  # in a notebook
    show(weights, tokens)                                # attention weights of any other program
    Path("run.html").write_text(page(t, translator), encoding="utf-8")
    Path("live.html").write_text(live("assets/models/en-de"), encoding="utf-8")  # it translates

A name is imported when it is first asked for (PEP 562): `explorer.figures` needs no PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explorer.linked.live.page import LiveError, live
    from explorer.linked.living.notebook import FramedPage, show
    from explorer.linked.living.page import PageError, page

_HOMES = {
    "LiveError": "live.page",
    "PageError": "living.page",
    "FramedPage": "living.notebook",
    "live": "live.page",
    "page": "living.page",
    "show": "living.notebook",
}
__all__ = ["FramedPage", "LiveError", "PageError", "live", "page", "show"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'explorer' has no attribute {name!r}")
    return getattr(import_module(f"explorer.linked.{_HOMES[name]}"), name)
