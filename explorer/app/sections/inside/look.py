"""The query under inspection, the notation in which it is written, and what a step shows of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from explorer.app.controls.slots import Legend, SlotPicture, signed
from explorer.app.controls.text import alt
from explorer.app.server.view import View
from explorer.figures.base import captions, labels
from explorer.figures.base.plot import Spec
from explorer.figures.base.strips import Strip, largest, strips_spec, vectors_spec
from explorer.figures.pages.inside import LedgerRow, Symbols
from explorer.lenses.inside.inside import InsideHead
from transformer.config import Site
from transformer.view import HeadView

BADGE = "what if, not the model's computation"
EACH_ITS_OWN = "amber negative, purple positive, each line on its own scale"
ONE_SCALE = "amber negative, purple positive, one scale for all"
NAMES = {"paper": "the paper's symbols", "lecture": "a lecture's: α, b, columns"}
FIXED = (
    "weights",
    "output matrix",
    "sentence",
    "attention",
)  # figures that do not depend on the query
_LATEX = {"α": r"\alpha", "α̂": r"\hat\alpha", "head": r"\mathrm{head}"}


@dataclass(frozen=True)
class Notation(Symbols):
    """The symbols of one kind of attention; a formula is written once, with the paper's rows."""

    result_words: str  # the output of the head in a sentence

    def latex(self, formula: str) -> str:
        """A formula with its letters for `OWN`, `SOURCE`, `SCORE`, `WEIGHT` and `OUTPUT` put in.

        Columns have the position of a vector at its top, k^j for k_j, and W^q for W^Q.
        """
        if self.columns:
            formula = re.sub(r"k_\{j,i\}", "k^j_i", formula)
            formula = re.sub(r"(\bk|\bv|\by|\{k'\}|OWN|SOURCE)_([ij])", r"\1^\2", formula)
            formula = re.sub(r"W\^([QKVO])", lambda found: f"W^{found[1].lower()}", formula)
        letters = {"OWN": self.x, "SOURCE": self.source, "SCORE": self.score, "WEIGHT": self.weight}
        for name, letter in {**letters, "OUTPUT": self.output}.items():
            formula = formula.replace(name, _LATEX.get(letter, letter))
        return formula

    def times(self, first: str, second: str) -> str:
        """A product of rows with a matrix, as written for rows: columns stand at its right."""
        return rf"{second}\,{first}" if self.columns else rf"{first}\,{second}"

    def laid(self, matrix: np.ndarray) -> np.ndarray:
        """A matrix of rows as the notation has it: its vectors are rows, or columns."""
        return matrix.T if self.columns else matrix

    def product(self, small: str, of: str, name: str, d_model: int, d_k: int) -> str:
        """One projection with its shapes, such as q = x W^Q + bias."""
        shaped = ((small, 1, d_k), (of, 1, d_model), (f"W^{name}", d_model, d_k))
        left, x, w = (
            rf"\underset{{{rows} \times {columns}}}{{{symbol}}}"
            for symbol, *sides in shaped
            for rows, columns in [sides[::-1] if self.columns else sides]
        )
        return rf"{left} = {self.times(x, w)} + \text{{bias}}"


def notation(name: str, kind: str) -> Notation:
    """The paper's symbols, or those of a `lecture`; keys of another sequence get a letter."""
    cross = kind == "cross"
    if name == "lecture":
        return Notation(
            x="x" if cross else "a",
            source="a",
            score="α",
            weight="α̂",
            output="b",
            columns=True,
            result_words="the output b",
        )
    return Notation(
        x="x",
        source="m" if cross else "x",
        score="s",
        weight="w",
        output="head",
        columns=False,
        result_words="the head's output",
    )


class Outcome(NamedTuple):
    """The result of other arithmetic for one query, with numbers for all keys."""

    weights: np.ndarray  # (keys,)
    output: np.ndarray  # the sum of the values with these weights (d_head,)
    rows: tuple[LedgerRow, ...]  # the lines that the calculation shows under the model's own


@dataclass(frozen=True, kw_only=True)
class Look:
    """The subject of a step: a query with all its keys, one key, and the notation."""

    opened: View  # the sentence
    inside: InsideHead  # the query of the head
    view: HeadView  # the head in its row
    kind: str  # encoder, decoder or cross
    site: Site  # sides that this kind of attention connects
    sizes: tuple[int, int, int]  # d_model, d_k, heads
    key: int  # the key under inspection, from 0
    key_name: str  # that key in a sentence, as Markdown
    key_label: str  # that key beside a strip
    keys: slice  # the keys that are drawn
    symbols: Notation  # how vectors and numbers are written
    outcome: Outcome | None = None  # what other arithmetic makes of the query, if it is chosen

    def figure(
        self,
        name: str,  # unique on the page
        spec: Spec,
        quantity: str,  # what it shows, for the caption
        *legends: Legend,
        alt: str,
        computed: bool = True,  # whether the model computed its numbers
        least: int = 0,  # as in `SlotPicture`
    ) -> SlotPicture:
        """A figure with its caption and badge; one that depends on the step names it."""
        place = captions.place(self.view)
        if name not in FIXED:
            place += f" · {self._query_name()}"
        model = captions.model_name(self.view.model, self.view.norm)
        return SlotPicture(
            name=name,
            spec=spec,
            alt=alt,
            caption=f"{place} · {quantity} · {model}",
            badge=captions.badge(self.inside.audit) if computed else None,
            legends=legends,
            least=least,
        )

    def _query_name(self) -> str:
        """What the query is of: a token of the source, or a step of the output."""
        sort = "source token" if self.kind == "encoder" else "step"
        return f"{sort} {labels.count(self.inside.row)}"

    def strips(
        self, name: str, rows: list[Strip], quantity: str, joint: bool = False
    ) -> SlotPicture:
        """Vectors one below the other; `joint`: on one colour scale."""
        legend = signed(None, EACH_ITS_OWN)
        if joint:
            legend = signed(max(largest(row.values) for row in rows), ONE_SCALE)
        return self.figure(name, strips_spec(rows, joint), quantity, legend, alt=alt(rows))

    def of_keys(
        self, name: str, rows: np.ndarray, factors: np.ndarray, hover: tuple[str, str]
    ) -> SlotPicture:
        """A vector of every key that is drawn, one per row; hovering tells it times a factor."""
        drawn = rows[self.keys]
        tokens = self.view.key_tokens
        first = self.keys.start
        quantity = f"{name}, one per row"
        if len(drawn) < len(tokens):
            quantity += f" · keys {labels.count(first)}–{self.keys.stop} of {len(tokens)}"
        spec = vectors_spec(drawn, tokens[self.keys], factors, hover, self.key - first)
        legend = signed(largest(drawn), ONE_SCALE)
        text = f"{name.capitalize()} of {len(drawn)} tokens"
        return self.figure(name, spec, quantity, legend, alt=text)


class Contents(NamedTuple):
    """What a step shows of a query. Formulas are drawn once, all else follows the cursor."""

    latex: Sequence[str]  # as `Notation.latex` takes it
    text: str  # what happens, and what to notice
    figures: Sequence[SlotPicture]
    table: str = ""
    asides: Mapping[str, str] = {}  # explanations one click away, by title


def noted(name: str, vector: np.ndarray, bold: bool = False) -> Strip:
    return Strip(name, vector, f"length {np.linalg.norm(vector):.2f}", bold)
