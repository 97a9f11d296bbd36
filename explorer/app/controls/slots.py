"""Places on a page whose texts and figures follow the cursor, while the page around them stays as
it is.

The page draws its frame once, with empty slots in it. At each step one feed fills them all, and
`page/slots.js` redraws what has changed. (`st.plotly_chart` builds a chart anew whenever
one number changes, and Streamlit compares every element of a fragment that runs again.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from explorer.app.address import session
from explorer.app.controls.silence import hushed
from explorer.figures.base import style
from explorer.figures.base.captions import Badge
from explorer.figures.base.plot import Spec, quiet
from explorer.linked.served import imported

_SCRIPT = imported("page/slots.js")
_slot = st.components.v2.component(
    "slot",
    js=f"export default async (part) =>\n  (await {_SCRIPT}).slot(part);",
    isolate_styles=False,
)
_feed = st.components.v2.component(
    "slots_feed",
    js=f"export default async (part) => {{\n  (await {_SCRIPT}).feed(part);\n}};",
    isolate_styles=False,
)


@dataclass(frozen=True)
class Legend:
    """Meaning of the colours of a figure."""

    low: str  # the number at the left end
    high: str  # the number at the right end
    colors: tuple[str, ...]  # from left to right, as stops of a CSS gradient
    about: str  # what the colours stand for


def signed(
    largest: float
    | None,  # the magnitude at both ends; None if each part of the figure has its own
    about: str,  # what the colours stand for
) -> Legend:
    """The legend of signed numbers."""
    low, high = (
        ("− largest", "+ largest") if largest is None else (f"−{largest:.3g}", f"+{largest:.3g}")
    )
    clear = [f"{style.rgba(hue, 0)} 50%" for hue in (style.NEGATIVE, style.POSITIVE)]
    return Legend(low, high, (style.NEGATIVE, *clear, style.POSITIVE), about)


def shares(kind: str, about: str) -> Legend:
    """The legend of weights from 0 to 1, in the hue of a kind of attention."""
    hue = style.HUES[kind]
    return Legend("0", "1", (style.rgba(hue, style.FAINTEST), style.rgba(hue, 1)), about)


@dataclass(frozen=True)
class SlotPicture:
    """A figure in a slot."""

    name: str  # unique on the page
    spec: Spec  # the figure, as `explorer.figures.base.style.spec` writes it
    alt: str  # what the figure shows, for visitors who cannot see it
    caption: str  # written under it
    # `passed`, `text` and `title` of the audit; None if the numbers are not the model's
    badge: Badge | None = None
    legends: tuple[Legend, ...] = ()  # what its colours mean
    least: int = 0  # the smallest width in px; in less room it scrolls inside its own frame

    def sent(self) -> dict[str, object]:
        """The figure as the browser gets it."""
        return {
            "name": self.name,
            "figure": style.to_json(
                self.spec if session.visit().silent is None else quiet(self.spec)
            ),
            "height": self.spec["layout"]["height"],
            "alt": hushed(self.alt),
            "caption": hushed(self.caption),
            "badge": self.badge,
            "legends": [asdict(legend) for legend in self.legends],
            "least": self.least,
        }


Content = str | Sequence[SlotPicture]
"""Figures, or a text with `**bold**`, `*emphasis*`, tables, paragraphs.

`\\` stands before a literal sign.
"""


def slot(
    name: str,  # unique on the page; the feed fills it by this name
) -> None:
    """Draws an empty slot."""
    _slot(key=f"slot.{name}", data={"slot": name})


def feed(
    # unique on the page. Streamlit does not send a large feed again if nothing in it has changed,
    # so what changes rarely gets a feed of its own.
    name: str,
    contents: Mapping[str, Content],  # what to show, by the name of the slot
) -> None:
    """Fills slots."""
    filled = {
        key: {"text": hushed(content)}
        if isinstance(content, str)
        else {"pictures": [one.sent() for one in content]}
        for key, content in contents.items()
    }
    _feed(key=f"slots.{name}", data={"slots": filled})
