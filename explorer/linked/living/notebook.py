"""The linked view in a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.linked.living.page import page
from transformer.run import Translation

if TYPE_CHECKING:
    from transformer.translator import Translator

_UNTRUSTED = "This view runs scripts, so a notebook shows it only if it is trusted."


@dataclass(frozen=True, repr=False)
class FramedPage:
    """A page that a notebook shows in a frame of its own, so that cells have independent cursors."""

    page: str  # the HTML file
    height: int = 720  # px

    def _repr_html_(self) -> str:
        # What an untrusted notebook keeps of a frame is the text inside; a browser with the frame hides it.
        look = f"width: 100%; height: {self.height}px; border: 0"
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" style="{look}" allow="fullscreen" '
            f'title="Linked view of a run">{_UNTRUSTED}</iframe>'
        )

    def __repr__(self) -> str:
        return f"FramedPage({len(self.page):,} characters of HTML)"


def show(
    run: Translation,
    model: Translator | None = None,
    *,
    directory: str | Path | None = None,
    place: str = "",
    heads: str = "",
    measures: Sequence[str] = (),
    beside: Translation | None = None,
    beside_model: Translator | None = None,
    beside_directory: str | Path | None = None,
    height: int = 720,
) -> FramedPage:
    """The linked view of a run for a notebook; arguments and errors as in ``page``, ``height`` in px."""
    other = {
        "measures": measures,
        "beside": beside,
        "beside_model": beside_model,
        "beside_directory": beside_directory,
    }
    return FramedPage(page(run, model, directory=directory, place=place, heads=heads, **other), height)  # type: ignore[arg-type]
