"""The formula of a head as this model computes it: what the positions add, and what the mask hides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.app.address.encodings import ENCODINGS
from explorer.app.views.inside.look import Look
from explorer.app.views.inside.notation import Notation
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
_CALLED = {
    "self_attention": r"\mathrm{attention}",
    "cross_attention": r"\mathrm{cross}",
    "feed_forward": r"\mathrm{FFN}",
}


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
    if not look.symbols.columns:
        return terms.rows()
    return columns(look)[1]


def rows(look: Look) -> tuple[str, ...]:
    """The projections of all queries and keys, and the head, in rows as in the paper."""
    source = r"\mathrm{memory}\," if look.kind == "cross" else "X"
    each = [rf"{name} &= {of}W^{{{name}}}" for name, of in (("Q", "X"), ("K", source), ("V", source))]
    return aligned(*each), terms_of(look).rows()


def columns(look: Look) -> tuple[str, ...]:
    """The same in columns, as lectures write it."""
    own = "X" if look.kind == "cross" else "I"
    each = [rf"{name} &= W^{{{name.lower()}}}{of}" for name, of in (("Q", own), ("K", "I"), ("V", "I"))]
    return aligned(*each), aligned(*terms_of(look).columns(), r"O &= V \hat A")


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


def chain(names: Sequence[str], shape: tuple[int, int]) -> str:
    """x → z → y, with the shape under each."""
    return r" \to ".join(rf"\underset{{{shape[0]} \times {shape[1]}}}{{{_primed(name)}}}" for name in names)


def steps(
    names: Sequence[str],  # of the points of the chain
    sublayers: Sequence[str],  # the sub-layers between them
    norm: str,  # `pre` or `post`
    called: str = "LN",  # short name of the norm
) -> str:
    """Every arrow of the chain: the sub-layer, the sum, and the place of the norm."""
    lines = []
    for before, after, name in zip(names[:-1], names[1:], sublayers, strict=True):
        x, memory = _primed(before), (r", \mathrm{memory}" if name == "cross_attention" else "")
        read = x if norm == "post" else rf"\mathrm{{{called}}}({x})"
        total = rf"{x} + {_CALLED[name]}({read}{memory})"
        lines.append(
            rf"{_primed(after)} &= " + (rf"\mathrm{{{called}}}({total})" if norm == "post" else total)
        )
    return aligned(*lines)


def _primed(name: str) -> str:
    return name.replace("′", "'")


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
