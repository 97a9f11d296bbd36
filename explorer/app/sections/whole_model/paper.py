"""The running model beside the models of the paper, and what to read next."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.app.controls import plain
from explorer.app.server.opened import Opened
from explorer.figures.base import captions, labels
from transformer.model import count_parameters
from transformer.storage.card import Score, paragraph, scores

SHARED_TEST = "newstest2014"
"""The test on which the paper reports its scores."""
_BASE_BLEU = "27.3 en–de, 38.1 en–fr"
_BIG_BLEU = "28.4 en–de, 41.0 en–fr (41.8 in its table 2)"
_UNSTATED = "not stated in its card"
READING = {
    "Attention and alignment": (
        (
            "Neural Machine Translation by Jointly Learning to Align and Translate",
            "Bahdanau, Cho, Bengio",
            2015,
        ),
        ("Effective Approaches to Attention-based Neural Machine Translation", "Luong, Pham, Manning", 2015),
    ),
    "The Transformer": (
        ("Attention Is All You Need", "Vaswani et al.", 2017),
        ("The Annotated Transformer", "Rush", 2018),
        ("Layer Normalization", "Ba, Kiros, Hinton", 2016),
        ("On Layer Normalization in the Transformer Architecture", "Xiong et al.", 2020),
        ("Transformer Feed-Forward Layers Are Key-Value Memories", "Geva, Schuster, Berant, Levy", 2021),
    ),
    "What heads do": (
        (
            "Analyzing Multi-Head Self-Attention: Specialized Heads Do the Heavy Lifting, the Rest Can Be "
            "Pruned",
            "Voita et al.",
            2019,
        ),
        ("What Does BERT Look At? An Analysis of BERT’s Attention", "Clark et al.", 2019),
    ),
    "What a weight explains": (
        ("Attention is not Explanation", "Jain, Wallace", 2019),
        ("Attention is not not Explanation", "Wiegreffe, Pinter", 2019),
        (
            "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms",
            "Kobayashi et al.",
            2020,
        ),
    ),
}
"""Titles, authors and years, by topic."""


def table(opened: Opened) -> None:
    """Draws the table of this model and the paper's two."""
    st.divider()
    run, model = opened.translation, opened.source.translator()
    config, card = run.config, model.card
    training = paragraph(card, "Training").partition(". ")[0]
    shared, own_tests = bleu(scores(card))
    rows = [
        ("layers", "6 + 6", "6 + 6", " + ".join(str(stack.n_layers) for stack in config.stacks.values())),
        ("d_model", "512", "1,024", f"{config.d_model:,}"),
        (
            "d_ff",
            "2,048",
            "4,096",
            " + ".join(dict.fromkeys(f"{config.inner_width(s):,}" for s in config.stacks)),
        ),
        ("heads", "8", "16", f"{config.n_heads}"),
        (
            "LayerNorm",
            "post-norm",
            "post-norm",
            captions.norm_name(config.norm) + (", RMSNorm" if config.norm_by == "rms" else ""),
        ),
        ("positions", "sinusoidal", "sinusoidal", plain(config.positions)),
        ("pieces", "37,000 (en–de)", "37,000 (en–de)", f"{config.n_target_pieces:,}"),
        ("parameters", "65 million", "213 million", f"{count_parameters(model.model) / 1e6:.1f} million"),
        (f"BLEU on {SHARED_TEST}", _BASE_BLEU, _BIG_BLEU, shared or _UNSTATED),
        ("BLEU on other tests", "–", "–", own_tests or _UNSTATED),
        (
            "training",
            "12 hours on 8 P100 GPUs",
            "3.5 days on 8 P100 GPUs",
            plain(labels.shorten(training, 200)) or _UNSTATED,
        ),
    ]
    st.markdown("##### The paper's models and this one")
    with st.container(key="anatomy-paper"):
        st.markdown(
            f"| | {plain(run.model)} | paper, base | paper, big |\n|--|--|--|--|\n"
            + "\n".join(f"| {name} | {own} | {base} | {big} |" for name, base, big, own in rows)
        )
    st.caption(
        f"Only scores on one test can be compared: {SHARED_TEST} is news, with long sentences. Tatoeba, on "
        "which the bundled models are tested too, has short everyday sentences much like those of their "
        "training, so scores on it are far higher. Paper: Vaswani et al. 2017, sections 5 and 6, tables 2 "
        "and 3 · this model: its configuration and its card"
    )


def bleu(stated: Sequence[Score]) -> tuple[str, str]:
    """BLEU as a card states it: on the paper's test, and on all others; empty for what it does not state."""
    found = [each for each in stated if each.metric == "bleu"]
    shared = [each for each in found if SHARED_TEST in each.dataset.lower()]
    own = "; ".join(f"{each.value:g} on {plain(each.dataset)}" for each in found if each not in shared)
    return "; ".join(f"{each.value:g}" for each in shared), own


def reading() -> None:
    """Draws a short list of further reading."""
    with st.expander("Further reading"):
        for topic, works in READING.items():
            lines = (f"- *{title}*, {authors}, {year}" for title, authors, year in works)
            st.markdown("\n".join((f"**{topic}**", "", *lines)))
