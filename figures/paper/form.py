"""A visitor's choices for a figure in a paper, and the finished figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

File = Literal["pdf", "svg", "png"]
FILES: tuple[File, ...] = ("pdf", "svg", "png")
WIDTHS = (3.0, 40.0)
"""Smallest and largest width in cm."""
LETTERS = (4.0, 24.0)
"""Smallest and largest font size in pt."""
MOST_HEADS = 12
"""Most heads on one sheet."""
INCH = 2.54
POINTS = 72.0
_ONE_COLUMN, _TWO_COLUMNS = 8.5, 17.0
"""Usual widths in cm of a figure in one column of a journal, and across two."""
_MOST_IN_COLUMN = 30
"""Most tokens on a side of a map that fits into one column with all its labels."""
_DRAFT_DPI = 192


@dataclass(frozen=True)
class Form:
    """The form of a figure for a paper.

    Raises:
        ValueError: a number is outside its range.
    """

    file: File = "pdf"  # the format of the file
    width: float = _ONE_COLUMN  # width in cm; the height follows from it
    letters: float = 8.0  # the font size in pt
    columns: int = 3  # maps per row
    scale: str = "linear"  # how weights become colours, one of `style.SCALES`
    footnote: bool = False  # whether what the figure shows and where it comes from is printed under it
    dpi: int = 300  # dots per inch of a PNG
    draft: bool = False  # whether a small PNG is made that shows how the file will look, with the same notes

    def __post_init__(self) -> None:
        for name, value, (low, high) in (
            ("width is {} cm", self.width, WIDTHS),
            ("font size is {} pt", self.letters, LETTERS),
            ("number of maps per row is {}", self.columns, (1, MOST_HEADS)),
        ):
            if not low <= value <= high:
                raise ValueError(f"The {name.format(value)}; it must be from {low:g} to {high:g}.")
        if self.file not in FILES:
            raise ValueError(f"There is no format {self.file!r}; there are {', '.join(FILES)}.")

    @staticmethod
    def usual_for(maps: int, longest: int) -> Form:
        """The form for some maps of up to `longest` tokens on a side, if nothing else is chosen."""
        return Form(width=_ONE_COLUMN if maps == 1 and longest <= _MOST_IN_COLUMN else _TWO_COLUMNS)

    @property
    def saved(self) -> tuple[File, int]:
        """The format of the bytes, and the dots per inch."""
        return ("png", _DRAFT_DPI) if self.draft else (self.file, self.dpi)

    @property
    def points(self) -> float:
        """The width in pt."""
        return self.width / INCH * POINTS


@dataclass(frozen=True)
class Paper:
    """A figure for a paper, as a file."""

    data: bytes  # the bytes of the file
    width: float  # in cm
    height: float  # in cm
    notes: tuple[str, ...]  # what the visitor should know about it, one sentence each
