"""The symbols of "Inside a head": the paper's, or those of lectures that write vectors as columns."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.figures.pages.lecture import Symbols


@dataclass(frozen=True)
class Notation(Symbols):
    """The symbols of one kind of attention, in figures and in LaTeX."""

    @property
    def latex_score(self) -> str:
        """The score in LaTeX."""
        return {"α": r"\alpha"}.get(self.score, self.score)

    @property
    def latex_weight(self) -> str:
        """The weight in LaTeX."""
        return {"α̂": r"\hat\alpha"}.get(self.weight, self.weight)

    @property
    def latex_output(self) -> str:
        """The output in LaTeX."""
        return r"\mathrm{head}" if self.output == "head" else self.output

    @property
    def result_words(self) -> str:
        """The output in a sentence."""
        return "the head's output" if self.output == "head" else f"the output {self.output}"

    def latex_matrix(self, name: str) -> str:
        """The weight matrix Q, K, V or O in LaTeX."""
        return f"W^{{{name.lower() if self.columns else name}}}"

    def indexed(self, symbol: str, letter: str = "j") -> str:
        """A vector with the letter of its position, in LaTeX."""
        return f"{symbol}^{letter}" if self.columns else f"{symbol}_{letter}"

    def product(
        self,
        small: str,  # the vector that comes out
        of: str,  # the vector that goes in
        name: str,  # Q, K or V
        sizes: tuple[int, int],  # d_model and d_k
    ) -> str:
        """One projection in LaTeX, with shapes, such as q = x W^Q + bias."""
        d_model, d_k = sizes
        matrix = self.latex_matrix(name)
        if self.columns:
            parts = (small, d_k, 1), (matrix, d_k, d_model), (of, d_model, 1)
            left, w, x = (_shaped(*part) for part in parts)
            return rf"{left} = {w}\,{x} + \text{{bias}}"
        left, x, w = (_shaped(*part) for part in ((small, 1, d_k), (of, 1, d_model), (matrix, d_model, d_k)))
        return rf"{left} = {x}\,{w} + \text{{bias}}"


def _shaped(symbol: str, rows: int, columns: int) -> str:
    return rf"\underset{{{rows} \times {columns}}}{{{symbol}}}"


def notation(
    name: str,  # `paper` or `lecture`
    # encoder, decoder or cross. Cross-attention computes keys from another sequence, so their vectors get a
    # letter of their own: the paper speaks of memory.
    kind: str,
) -> Notation:
    """The symbols for one kind of attention."""
    cross = kind == "cross"
    if name == "lecture":
        return Notation("x" if cross else "a", "a", "α", "α̂", "b", columns=True)
    return Notation("x", "m" if cross else "x", "s", "w", "head", columns=False)


NAMES = {"paper": "the paper's symbols", "lecture": "a lecture's: α, b, columns"}
"""The choices of the switch."""
