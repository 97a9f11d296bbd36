"""The running model beside the models of the paper, and what to read next."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.app.controls import plain
from explorer.app.server.view import View
from explorer.figures.base import captions, labels
from transformer.model import count_parameters
from transformer.storage.card import Score, paragraph, scores

SHARED_TEST = "newstest2014"  # on which the paper reports its scores
UNSTATED = "not stated in its card"
COMPARED = (
    f"Only scores on one test can be compared: {SHARED_TEST} is news, with long sentences; Tatoeba has short "
    "everyday sentences much like those of the bundled models' training, so scores on it are far higher. "
    "Paper: Vaswani et al. 2017, sections 5 and 6, tables 2 and 3 · this model: its configuration and card"
)
READING = """
**Attention and alignment**

- *Neural Machine Translation by Jointly Learning to Align and Translate*, Bahdanau, Cho, Bengio, 2015
- *Effective Approaches to Attention-based Neural Machine Translation*, Luong, Pham, Manning, 2015

**The Transformer**

- *Attention Is All You Need*, Vaswani et al., 2017
- *The Annotated Transformer*, Rush, 2018
- *Layer Normalization*, Ba, Kiros, Hinton, 2016
- *On Layer Normalization in the Transformer Architecture*, Xiong et al., 2020
- *Transformer Feed-Forward Layers Are Key-Value Memories*, Geva, Schuster, Berant, Levy, 2021

**What heads do**

- *Analyzing Multi-Head Self-Attention: Specialized Heads Do the Heavy Lifting, the Rest Can Be Pruned*,
  Voita et al., 2019
- *What Does BERT Look At? An Analysis of BERT’s Attention*, Clark et al., 2019

**What a weight explains**

- *Attention is not Explanation*, Jain, Wallace, 2019
- *Attention is not not Explanation*, Wiegreffe, Pinter, 2019
- *Attention is Not Only a Weight: Analyzing Transformers with Vector Norms*, Kobayashi et al., 2020
"""


def table(opened: View) -> None:
    """This model and the paper's two, and a short list of further reading."""
    run, model = opened.translation, opened.source.translator()
    config, of = run.config, run.config.stacks
    training = plain(labels.shorten(paragraph(model.card, "Training").partition(". ")[0], 200))
    shared, others = bleu(scores(model.card))
    widths = dict.fromkeys(f"{config.inner_width(side):,}" for side in of)
    norm = captions.norm_name(config.norm) + ", RMSNorm" * (config.norm_by == "rms")
    rows = (
        ("layers", " + ".join(str(stack.n_layers) for stack in of.values()), "6 + 6", "6 + 6"),
        ("d_model", f"{config.d_model:,}", "512", "1,024"),
        ("d_ff", " + ".join(widths), "2,048", "4,096"),
        ("heads", f"{config.n_heads}", "8", "16"),
        ("LayerNorm", norm, "post-norm", "post-norm"),
        ("positions", plain(config.positions), "sinusoidal", "sinusoidal"),
        ("pieces", f"{config.n_target_pieces:,}", "37,000 (en–de)", "37,000 (en–de)"),
        ("parameters", f"{count_parameters(model.model) / 1e6:.1f} million", "65 million", "213 million"),
        (
            f"BLEU on {SHARED_TEST}",
            *(shared or UNSTATED, "27.3 en–de, 38.1 en–fr"),
            "28.4 en–de, 41.0 en–fr (41.8 in its table 2)",
        ),
        ("BLEU on other tests", others or UNSTATED, "–", "–"),
        ("training", training or UNSTATED, "12 hours on 8 P100 GPUs", "3.5 days on 8 P100 GPUs"),
    )
    head = f"| | {plain(run.model)} | paper, base | paper, big |\n|--|--|--|--|\n"
    st.divider()
    st.markdown("##### The paper's models and this one")
    with st.container(key="anatomy-paper"):
        st.markdown(head + "\n".join(f"| {' | '.join(row)} |" for row in rows))
    st.caption(COMPARED)
    with st.expander("Further reading"):
        st.markdown(READING)


def bleu(stated: Sequence[Score]) -> tuple[str, str]:
    """BLEU as a card states it: on the paper's test, and on all others; empty for what it does not state."""
    values = [each for each in stated if each.metric == "bleu"]
    shared = [each for each in values if SHARED_TEST in each.dataset.lower()]
    others = "; ".join(f"{each.value:g} on {plain(each.dataset)}" for each in values if each not in shared)
    return "; ".join(f"{each.value:g}" for each in shared), others
