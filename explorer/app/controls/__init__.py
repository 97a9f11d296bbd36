"""The page kit: figures with their words, parts, pickers, export, plain text."""

from explorer.app.controls.export import Picture, Table
from explorer.app.controls.panels import chart, head_panel, panel
from explorer.app.controls.parts import part, refusals
from explorer.app.controls.silence import drawn, hushed, say
from explorer.app.controls.text import command, inform, plain, power, refusal, seen, word

__all__ = [
    "Picture",
    "Table",
    "chart",
    "command",
    "drawn",
    "head_panel",
    "hushed",
    "inform",
    "panel",
    "part",
    "plain",
    "power",
    "refusal",
]
__all__ += ["refusals", "say", "seen", "word"]
