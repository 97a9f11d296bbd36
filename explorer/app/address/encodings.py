"""The positional encodings in words and formulas: where each acts, and who described it. No
PyTorch.

Their computation is in ``transformer.encodings``, a class for each name.
"""

from dataclasses import dataclass

from transformer import config


@dataclass(frozen=True)
class Encoding:
    """Facts about an encoding."""

    name: str  # as configs and addresses have it
    paper: str  # who described it, and where
    formula: str  # LaTeX
    what: str  # one or two sentences on the place where it acts, and what follows from that
    bias: str = ""  # LaTeX of B, the numbers that it adds to the scores, if it does
    bias_words: str = ""  # a sentence on B
    title: str = ""  # what people call it; the name if empty
    from_zero: bool = False  # whether the formula counts positions from 0

    @property
    def acts(self) -> str:
        """On what it acts: "nowhere", "embeddings", "rotation" or "scores"."""
        return config.ENCODINGS[self.name].acts


_TABLE = (
    Encoding(
        "none",
        "nothing is added",
        r"x_{pos} = \sqrt{d_{model}}\;E_{token}",
        "The encoder sees a bag of words: if you permute the words, its outputs are permuted "
        "alike. The decoder still has an order, because its mask lets row *t* see *t* keys.",
    ),
    Encoding(
        "sinusoidal",
        "Vaswani et al. 2017, section 3.5",
        r"\begin{aligned} PE_{(pos,\,2i)} &= \sin(pos\,/\,base^{\,2i/d_{model}}) \\[4pt] "
        r"PE_{(pos,\,2i+1)} &= \cos(pos\,/\,base^{\,2i/d_{model}}) \end{aligned}",
        "A fixed table is added to the token embeddings once, before the first layer. Each pair of "
        "dimensions is a clock hand with a speed of its own.",
        from_zero=True,
    ),
    Encoding(
        "learned",
        "Gehring et al. 2017, section 3.1",
        r"x_{pos} = \sqrt{d_{model}}\;E_{token} + P_{pos}",
        "A trained table is added to the token embeddings. The table ends at some position, and "
        "rows that training rarely reached stay near their random start.",
        from_zero=True,
    ),
    Encoding(
        "shaw",
        "Shaw et al. 2018, equations 2 and 4",
        (
            r"e_{ij} = \frac{q_i \cdot (k_j + a_{j-i})}{\sqrt{d_k}},\quad j-i \text{ clipped to } "
            r"\pm "
            r"16"
        ),
        "Each distance has a trained vector, and every query is compared with that vector: the "
        "query itself decides which distances it likes. Here every layer and head has vectors of "
        "its own, for keys only.",
        bias=r"B_{ij} = q_i \cdot r_{\mathrm{clip}(j - i)} / \sqrt{d_k}",
        bias_words="B compares the query with a learned vector r for the distance (Shaw et al., relative "
        "keys); all far distances share one (clip).",
        title="relative keys",
    ),
    Encoding(
        "t5",
        "Raffel et al. 2020, section 2.1",
        r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} + b_{\,bucket(j-i)}",
        "Each head has a trained number for each bucket of distances. Near distances have a "
        "bucket each; far distances share one. The layers of a stack share the numbers. T5 "
        "itself leaves ÷ √d_k out; models trained by this package divide.",
        bias=r"B_{ij} = t_{\mathrm{bucket}(j - i)}",
        bias_words="B is a learned number t for each head and bucket of distances: a bucket a distance below "
        "8 in the encoder and below 16 in the decoder, then ever wider ones, and one from 128 on.",
        title="T5 buckets",
    ),
    Encoding(
        "rotary",
        "Su et al. 2021, equation 15",
        r"\begin{aligned} q_i' &= R_{i}\,q_i,\quad k_j' = R_{j}\,k_j \\[4pt] "
        r"q_i' \cdot k_j' &= q_i \cdot R_{j-i}\,k_j \end{aligned}",
        "Queries and keys are rotated by their position, each pair of dimensions at its own "
        "speed. The product then depends on the two positions only through their distance. "
        "Values stay as they are.",
        from_zero=True,
    ),
    Encoding(
        "alibi",
        "Press et al. 2022, section 3",
        r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} - m_{head}\,|i-j|",
        "A fixed penalty grows with distance, with a different slope in each head; nothing is "
        "trained. In the encoder, the penalty is the same on both sides, so mainly `</s>`, which "
        "always stands at the right end, tells left from right.",
        bias=r"B_{ij} = -m\,|i - j|",
        bias_words="ALiBi adds the penalty B for distance, with a fixed slope m for each head.",
        title="ALiBi",
    ),
)
ENCODINGS = {encoding.name: encoding for encoding in _TABLE}


def twin_title(name: str) -> str:
    """What people call a twin or an encoding: `shaw-seed2` is "relative keys, seed 2"."""
    first, seed, number = name.partition("-seed")
    title = (ENCODINGS[first].title if first in ENCODINGS else "") or first
    title = "sinusoidal (post-norm)" if first == "postnorm" else title
    return f"{title}, seed {number}" if seed else title
