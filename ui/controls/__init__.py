"""The page kit: figures with their words, parts, pickers, export, plain text."""

from ui.controls.export import Picture, Table
from ui.controls.panels import chart, inform, panel, seen
from ui.controls.parts import part, refusals
from ui.controls.silence import drawn, hushed, say
from ui.controls.text import command, plain, power, refusal, word

__all__ = [
    "Picture",
    "Table",
    "chart",
    "command",
    "drawn",
    "hushed",
    "inform",
    "panel",
    "part",
    "plain",
    "power",
    "refusal",
]
__all__ += ["refusals", "say", "seen", "word"]
