"""The linked view in a notebook."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack, overload

from explorer.linked.living.page import (
    RunOptions,
    WeightsOptions,
    model_in,
    page,
    tokens_in,
)
from transformer.exports.array_numbers import Weights
from transformer.exports.array_tokens import Tokens
from transformer.run import Translation

if TYPE_CHECKING:
    from transformer.translator import Translator

_UNTRUSTED = "This view runs scripts, so a notebook shows it only if it is trusted."


@dataclass(frozen=True, repr=False)
class FramedPage:
    """A page that a notebook shows in a frame of its own, so that cells have independent
    cursors."""

    page: str  # the HTML file
    height: int = 720  # px

    def _repr_html_(self) -> str:
        # What an untrusted notebook keeps of a frame is the text inside; a browser with the frame
        # hides it.
        look = f"width: 100%; height: {self.height}px; border: 0"
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" style="{look}" allow="fullscreen" '
            f'title="Linked view of a run">{_UNTRUSTED}</iframe>'
        )

    def __repr__(self) -> str:
        return f"FramedPage({len(self.page):,} characters of HTML)"


@overload
def show(
    run: Translation,
    model: Translator | None = None,
    *,
    height: int = 720,
    **options: Unpack[RunOptions],
) -> FramedPage: ...
@overload
def show(
    run: Weights,
    model: Tokens | None = None,
    *,
    height: int = 720,
    **options: Unpack[WeightsOptions],
) -> FramedPage: ...
def show(
    run: Translation | Weights,
    model: Translator | Tokens | None = None,
    *,
    height: int = 720,
    **options: Any,
) -> FramedPage:
    """The linked view of a run, or of weights and tokens, for a notebook; arguments and errors as
    in ``page``, ``height`` in px."""
    if isinstance(run, Translation):
        content = page(run, model_in(model), **options)
    else:
        content = page(run, tokens_in(model), **options)
    return FramedPage(content, height)
