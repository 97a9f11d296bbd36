"""The page kit: figures with their words, parts, pickers, export, plain text."""

from ui.controls.export import Picture, Table
from ui.controls.panels import chart, how, panel, seen
from ui.controls.parts import part, refusals
from ui.controls.text import command, plain, power, word

__all__ = ["Picture", "Table", "chart", "command", "how", "panel", "part", "plain", "power", "refusals"]
__all__ += ["seen", "word"]
