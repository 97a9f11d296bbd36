"""The paper: each of its equations, figures and tables, and the live number or picture here."""

from typing import NamedTuple
from urllib.parse import parse_qsl

import streamlit as st

from explorer.app.controls import styles
from explorer.app.shell import menu
from explorer.app.shell.page import open_plain_page


class PaperItem(NamedTuple):
    """Something that the paper says."""

    name: str  # what the paper calls it
    says: str  # what it says, in a line; for one without a counterpart here, why it has none
    links: tuple[
        tuple[str, ...], ...
    ]  # what opens here, and the page with the parameters that it names
    formula: str  # LaTeX, or nothing


def walk(text: str) -> dict[str, tuple[PaperItem, ...]]:
    """Items by headings: `#` begins a heading, `*` an item, `$` a formula, `>` a link.

    Other lines say.
    """
    sections = dict[str, tuple[PaperItem, ...]]()
    for section in text.split("# ")[1:]:
        heading, *items = section.strip().split("\n* ")
        for name, *lines in (item.split("\n") for item in items):
            of = {
                mark: [line[2:] for line in lines if line.startswith(f"{mark} ")] for mark in "$>"
            }
            says = " ".join(line for line in lines if line[:2] not in ("$ ", "> "))
            links = tuple(tuple(cell.rsplit(": ", 1)) for cell in of[">"])
            item = PaperItem(name, says, links, " ".join(of["$"]))
            sections[heading] = (*sections.get(heading, ()), item)
    return sections


WALK = walk(r"""
# Equations
* Equation 1, section 3.2.1
A query takes a weighted mean of values; the weights come from its products with the keys.
$ \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^T}{\sqrt{d_k}}\right)V
> Scores and weights of one row: inside_a_head?section=weights
* Footnote 4, section 3.2.1
Without the divisor, products of wide vectors are large, and the softmax saturates.
$ \mathrm{Var}(q \cdot k) = d_k
> This row without √d_k: inside_a_head?section=weights&what_if=no-scale
* MultiHead, section 3.2.2
Heads are computed side by side, joined, and mixed by one matrix.
$ \mathrm{MultiHead}(Q, K, V) = \mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_h)\,W^O
> All heads of the layer, joined: inside_a_head?section=heads
* head_i, section 3.2.2
Every head looks through projections of its own.
$ \mathrm{head}_i = \mathrm{Attention}(QW_i^Q, KW_i^K, VW_i^V)
> Query, key and value of one head: inside_a_head?section=projections
* Three uses of attention, section 3.2.3
In the encoder, in the decoder under a mask, and from decoder to encoder: cross-attention.
> All three on your sentence: app
> The masks: masks
* The sub-layer, section 3.1
Every sub-layer adds to the stream. LayerNorm follows; in pre-norm models, it precedes.
$ \mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))
> The sum and its LayerNorm: whole_model?part=encoder-attention-add
* Equation 2, section 3.3
Two linear maps with a ReLU between them, at each position alone.
$ \mathrm{FFN}(x) = \max(0, xW_1 + b_1)W_2 + b_2
> Its units at your token: whole_model?part=encoder-forward
* Embeddings and softmax, section 3.4
Embeddings are multiplied by √d_model; the same matrix gives the logits of the next token.
> The input of the first layer: whole_model?part=source-embedding
> Logits and probabilities: whole_model?part=output
* Positional encoding, section 3.5
Sine and cosine waves of growing length are added to the embeddings.
$ PE_{(pos,2i)} = \sin(pos / 10000^{2i/d_{model}}), \quad PE_{(pos,2i+1)} = \cos(pos / 10000^{2i/d_{model}})
> The table, for any base and width: positions?encoding=sinusoidal
* Adam, section 5.3
β₁ = 0.9, β₂ = 0.98, ε = 10⁻⁹.
> One weight, step by step: findings?study=adam
* Equation 3, section 5.3
The rate rises through the warm-up, then falls with one over the square root of the step.
$ lrate = d_{model}^{-0.5} \cdot \min(step^{-0.5},\; step \cdot warmup\_steps^{-1.5})
> The schedule, for any width and warm-up: training?view=schedule
* Regularisation, section 5.4
Dropout on what sub-layers add and on the sums of embeddings; label smoothing with ε = 0.1.
> The smoothed loss: training?view=loss
* Length penalty, section 6.1
A beam of 4; finished hypotheses are ranked by log-probability over this penalty, with α = 0.6 (Wu et al.
2016).
$ lp(y) = \frac{(5 + |y|)^\alpha}{(5 + 1)^\alpha}
> The tree with the paper's setting: beam_search?decode=beam-4&penalty=0.6&length_offset=5
# Figures
* Figure 1
The whole model.
> The running model as a diagram: whole_model
* Figure 2
Left, one head as a chain; right, heads side by side.
> The path of one query: inside_a_head?section=path
> All heads and the output matrix: inside_a_head?section=heads
* Figure 3
Heads of encoder self-attention link words that are far apart.
> Encoder self-attention as lines: encoder_self_attention?show=lines
* Figure 4
Two heads look from a pronoun to what it may stand for.
> Encoder self-attention as lines: encoder_self_attention?show=lines
* Figure 5
Different heads of a layer do different things.
> All heads of your sentence: encoder_self_attention
> Roles over many sentences: heads
# Tables
* Table 1
What a layer costs: operations, sequential steps, and the longest path between two positions.
> The table, beside time and memory: findings?study=cost
> The path between two of your tokens: recurrent?view=path
* Table 2
BLEU and training cost beside earlier models.
> At its end: beside this model: whole_model
* Table 3 (A)
More and fewer heads at the same cost; one head is worse than eight.
> What en-pt loses without each head: findings?study=en-pt/importance
* Table 3 (B)
Narrower keys are worse. No two bundled models differ in them alone; products of one row show what d_k does.
> Products of query and key: inside_a_head?section=products
* Table 3 (C)
Larger models are better. No two bundled models differ in size alone; you can train small ones that do.
> Train a model of your size: training?view=here
* Table 3 (D)
Dropout and label smoothing help. The models for German were trained with both, en-pt and the language model
with neither, but no two differ in them alone.
> Label smoothing: training?view=loss
* Table 3 (E)
Learned positions do as well as sinusoids.
> The same comparison on twins, with intervals: findings?study=positions
* Table 4
The model learns constituency parsing. No model here parses.
> The roles of heads over many sentences: heads
""")
"""All that the paper numbers, and the formulas that it does not number."""


def show() -> None:
    open_plain_page("paper", styles.sheet("paper"))
    st.markdown(
        "*Attention Is All You Need*, Vaswani et al. 2017. Every link opens the same thing here, "
        "for your sentence and the model on the left wherever a model is involved."
    )
    for heading, items in WALK.items():
        st.markdown(f"##### {heading}")
        for number, item in enumerate(items):
            with st.container(key=f"paper-row-{heading.lower()}-{number}"):
                left, middle, right = st.columns(
                    [1.3, 3.2, 1.9], gap="medium", vertical_alignment="center"
                )
                left.markdown(f"**{item.name.replace('_i', '$_i$')}**")
                middle.markdown(f"{item.says}" + (f"\n\n${item.formula}$" if item.formula else ""))
                with right:
                    for label, address in item.links:
                        page, _, query = address.partition("?")
                        menu.link(
                            page,
                            label,
                            ":material/arrow_forward:",
                            "content",
                            **dict(parse_qsl(query)),
                        )


show()
