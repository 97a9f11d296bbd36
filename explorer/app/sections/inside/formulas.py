"""A head as this model computes it, in formulas: what positions add, what the mask hides."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.app.address.encodings import ENCODINGS
from explorer.app.sections.inside.look import Look
from explorer.app.sections.inside.notation import Notation
from explorer.figures.base import labels

_ROTATED = r"\tilde q_i = q_i R_i,\quad \tilde k_j = k_j R_j"
_ROTATED_WORDS = "Rotary positions rotate every q and k by its position before the product (marked by ~)."
_MASK = r"M_{ij} = \begin{cases} 0 & j \le i \\ -\infty & j > i \end{cases}"
_MASK_WORDS = "M hides every key after the query, so that no position sees what is still to come."
_NOTHING_WORDS = {
    "encoder": "Every token sees every token: nothing is masked. In a batch, M would hide the padding.",
    "cross": "Every step sees every source token: nothing is masked. In a batch, M would hide the padding. "
    "Positions add nothing inside cross-attention; positions that were added to the embeddings still reach "
    "it through the stream.",
}
UNDIVIDED = "This model does not divide q·k by √d_k, so that step is left out."


@dataclass(frozen=True)
class Terms:
    """Terms inside the softmax beside q·k ÷ √d_k."""

    rotated: bool  # whether queries and keys are turned before the product
    rule: str  # name of the rule of the bias; empty if nothing is added
    masked: bool  # whether a mask hides later keys
    kind: str  # encoder, decoder or cross
    divided: bool = True  # whether q·k is divided by √d_k

    def row(self, weight: str) -> str:
        """The weights of query i, as in the paper: softmax(q Kᵀ / √d_k + …)."""
        q, k = self._named("q"), self._named("K")
        inner = self._divided(rf"{q} {k}^{{\top}}", r"\frac") + self._more("B_i", "M_i")
        return rf"{weight} = \mathrm{{softmax}}\!\left({inner}\right)"

    def column(self, weight: str, score: str) -> str:
        """The weights of query i, as lectures write them: softmax(Kᵀ q / √d_k + …)."""
        q, k = self._named("q"), self._named("K")
        more = self._more(r"B_i^{\top}", r"M_i^{\top}")
        inner = self._divided(rf"{k}^{{\top}} {q}", r"\frac") + more
        return rf"{score} = {inner},\quad {weight} = \mathrm{{softmax}}({score})"

    def rows(self) -> str:
        """All queries at once, in rows."""
        q, k = self._named("Q"), self._named("K")
        inner = self._divided(rf"{q} {k}^{{\top}}") + self._more("B", "M")
        return rf"\mathrm{{head}} = \mathrm{{softmax}}\!\left({inner}\right) V"

    def columns(self) -> tuple[str, str]:
        """All queries at once, in columns: the products, and what becomes of them."""
        q, k = self._named("Q"), self._named("K")
        more = self._more(r"B^{\top}", r"M^{\top}")
        inner = self._divided("A") + more
        return rf"A &= {k}^{{\top}} {q}", rf"\hat A &= \mathrm{{softmax}}\!\left({inner}\right)"

    def defined(self) -> tuple[str, ...]:
        """Meaning of the letters, in LaTeX."""
        found = [_ROTATED] if self.rotated else []
        found += [ENCODINGS[self.rule].bias] if self.rule else []
        return (*found, *([_MASK] if self.masked else []))

    def words(self) -> str:
        """Terms added and keys hidden, in words."""
        found = [_ROTATED_WORDS] if self.rotated else []
        found += [ENCODINGS[self.rule].bias_words] if self.rule else []
        found += [] if self.divided else [UNDIVIDED]
        return " ".join([*found, _MASK_WORDS if self.masked else _NOTHING_WORDS[self.kind]])

    def _divided(self, product: str, fraction: str = r"\tfrac") -> str:
        return rf"{fraction}{{{product}}}{{\sqrt{{d_k}}}}" if self.divided else product

    def _named(self, letter: str) -> str:
        return rf"\tilde {letter}" if self.rotated else letter

    def _more(self, bias: str, mask: str) -> str:
        return (f" + {bias}" if self.rule else "") + f" + {mask}" * self.masked


def terms_of(look: Look) -> Terms:
    """The terms of the head under inspection."""
    inside = look.inside
    divided = look.site.score == "scaled_dot"
    return Terms(inside.rotates, inside.rule, look.site.causal, look.kind, divided)


def overview(look: Look) -> str:
    """The whole head as one formula, in the notation of the page."""
    terms = terms_of(look)
    return aligned(*terms.columns(), r"O &= V \hat A") if look.symbols.columns else terms.rows()


def joined(symbols: Notation, biases: bool) -> tuple[str, ...]:
    """All heads side by side, and the output matrix."""
    out, matrix = symbols.latex_output, symbols.latex_matrix("O")
    bias = r" + \text{bias}" * biases
    if symbols.columns:
        return (
            rf"\mathrm{{all}} = [{out}_1; \dots; {out}_h]",
            rf"\mathrm{{update}} = {matrix}\,\mathrm{{all}}{bias}",
        )
    return (
        rf"\mathrm{{all}} = \mathrm{{Concat}}({out}_1, \dots, {out}_h)",
        rf"\mathrm{{update}} = \mathrm{{all}}\,{matrix}{bias}",
    )


def aligned(*lines: str) -> str:
    """Formulas one below the other, aligned where each has an &."""
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"


def bias_here(look: Look) -> str:
    """Term of the positions for the key under inspection, as a part of a sentence; empty if there is none."""
    inside = look.inside
    if inside.bias is None:
        return ""
    added = labels.number(inside.bias[look.key], "+.2f")
    query, key = labels.count(inside.row), labels.count(look.key)
    if inside.rule == "alibi" and query != key:
        slope = -float(inside.bias[look.key]) / abs(query - key)
        return f", and its distance adds −{slope:.3g} · |{query} − {key}| = {added}"
    return f", and its position adds {added}"
