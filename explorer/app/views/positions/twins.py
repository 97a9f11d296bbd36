"""The visitor's sentence in all twins: translations, one head of each twin, attention by distance."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import streamlit as st

from explorer.app.controls import inform, panel, pickers
from explorer.app.server import catalogue, measured, models
from explorer.app.server.catalogue import twin_title as title
from explorer.app.server.opened import Opened
from explorer.app.server.runs import NoProgress, Request, translate
from explorer.app.views.positions.encodings import STACKS, fitted_head
from explorer.figures import heatmap
from explorer.figures.base import captions, labels
from explorer.figures.pages.positions import twin_lines
from explorer.linked.view import window_around
from transformer import Translation, Window
from transformer.config import AttentionKind, Head, Side
from transformer.trace import AttentionTrace

REACH = 20
"""Largest distance with its own entry; larger ones are added to the ends."""
CELLS = 32
"""Most tokens of a twin's map."""
COLUMNS = 4
"""Number of maps beside each other."""
MAP = 264
"""The size of a map in px."""


@dataclass(frozen=True)
class TwinTranslation:
    """One twin's translation of the sentence."""

    name: str  # the name of the twin, without its folder
    translation: Translation  # its greedy translation


def translations(opened: Opened) -> list[TwinTranslation]:
    """Translates with every twin and lists the translations; a twin that refuses the text says why."""
    st.markdown("##### The same sentence through the twins")
    names = list(catalogue.twins())
    if not names:
        inform("There are no twins here yet. The project's README says how to train them.")
        return []
    runs, rows = [], []
    results = measured.shipped(measured.POSITIONS) or {"scores": {}}
    with st.spinner("Translating with every twin"):
        for full in names:
            name = full.partition("/")[2]
            asked = Request(models.find(full), opened.asked.text, "greedy", None)
            try:
                translation = translate(asked, NoProgress())
            except ValueError as error:
                rows.append({"twin": title(name), "translation": str(error), "BLEU on the test": None})
                continue
            runs.append(TwinTranslation(name, translation))
            score = results["scores"].get(name, {}).get("bleu", {}).get("value", {}).get("value")
            rows.append({"twin": title(name), "translation": translation.text, "BLEU on the test": score})
    st.caption(
        f"{len(runs)} small models (1.4 million parameters) share data, vocabulary, order of batches and "
        "steps. They differ only in their encoding; the post-norm twin differs in the place of its LayerNorm "
        "and in the learning rate and the warm-up that post-norm needs. All translate greedily."
    )
    st.dataframe(
        rows,
        hide_index=True,
        column_config={"BLEU on the test": st.column_config.NumberColumn(format="%.1f")},
        width="stretch",
    )
    return runs


def _shape(runs: list[TwinTranslation], kind: str) -> Head:
    config = runs[0].translation.config
    return config.sites[AttentionKind(kind)].n_layers, config.n_heads


def previous_head(trace: AttentionTrace, kind: str) -> Head:
    """The head (from 0) that, on average over a sentence, puts the most weight on the previous token."""
    layers = range(len(trace.layers[kind]))  # type: ignore[index]
    weights = np.stack([trace.weights(kind, layer) for layer in layers])
    shares = weights.diagonal(-1, -2, -1).mean(-1) if weights.shape[-1] > 1 else weights[..., 0, 0]
    layer, head = np.unravel_index(int(shares.argmax()), shares.shape)
    return int(layer), int(head)


def heads_shown(runs: list[TwinTranslation], kind: str, asked: Head | None) -> dict[str, Head]:
    """The head that the page shows of each twin: the one asked for, or the twin's own previous-token head."""
    layers, heads = _shape(runs, kind)
    if asked is not None:
        return dict.fromkeys((run.name for run in runs), fitted_head(asked, (layers, heads)))
    return {run.name: previous_head(_trace(run.translation), kind) for run in runs}


def _trace(translation: Translation) -> AttentionTrace:
    assert translation.attention is not None
    return translation.attention


def maps(
    runs: list[TwinTranslation],  # the twins' translations
    kind: Side,  # the stack whose self-attention is shown
    asked: Head | None,  # the head that the visitor chose, from 0; None asks for each twin's own
) -> None:
    """Draws one head of each twin side by side, and how far those heads look."""
    switch, picker = st.columns([1, 2], vertical_alignment="center")
    with switch:
        st.markdown(f"**One head of the {STACKS[kind]} in each twin**")
    with picker:
        layers, heads = _shape(runs, kind)
        now = None if asked is None else (min(asked[0], layers - 1), min(asked[1], heads - 1))
        names: dict[Head | None, str] = {None: "each twin's previous-token head"}
        for place in itertools.product(range(layers), range(heads)):
            names[place] = f"{labels.head_phrase(*place)} of every twin"
        pickers.choose("positions.twin_head", "Head", names, now, "twin_head")
    chosen = heads_shown(runs, kind, asked)
    for start in range(0, len(runs), COLUMNS):
        columns = st.columns(COLUMNS)
        for column, run in zip(columns, runs[start : start + COLUMNS], strict=False):
            with column:
                _map(run, kind, chosen[run.name])
    profiles = {run.name: profile(_trace(run.translation), kind, chosen[run.name]) for run in runs}
    reach = min(REACH, max(len(run.translation.source_tokens) for run in runs))
    span = slice(REACH - reach, (REACH if kind == "decoder" else REACH + reach) + 1)
    distances = list(range(-REACH, REACH + 1))[span]
    panel(
        "distance",
        lambda: twin_lines(
            distances,
            {name: each[span] for name, each in profiles.items()},
            ("distance, key − query", "weight"),
            title,
        ),
        "Attention by distance, averaged over the rows of those heads; −1 is the previous token"
        f"{', the ends hold all greater distances' if reach == REACH else ''} · {STACKS[kind]}, all twins · "
        f"{_verdict(runs, kind, chosen)}",
        alt="; ".join(
            f"{title(name)}: {each[REACH - 1]:.2f} on the previous token" for name, each in profiles.items()
        ),
    )


def _verdict(runs: list[TwinTranslation], kind: str, chosen: dict[str, Head]) -> str:
    """Verdict of the audit on the layers behind a derived figure."""
    layers = [(run, (AttentionKind(kind), chosen[run.name][0])) for run in runs]
    return told([title(run.name) for run, site in layers if not _trace(run.translation).audit(site).passed])


def told(failed: list[str]) -> str:
    """The end of a caption: the names of the traces that failed their audit, if any did."""
    return f"audit failed: {', '.join(failed)}" if failed else "from verified traces"


def profile(trace: AttentionTrace, kind: str, head: Head) -> np.ndarray:
    """Mean weight of a row at each distance from −REACH to REACH."""
    weights = trace.weights(kind, *head)
    return by_distance(weights) / len(weights)


def by_distance(weights: np.ndarray) -> np.ndarray:
    """Sums along the diagonals (…, queries, keys) → (…, 2 × REACH + 1); far ones count in the ends."""
    queries, keys = weights.shape[-2:]
    sums = np.zeros((*weights.shape[:-2], 2 * REACH + 1))
    for distance in range(1 - queries, keys):
        sums[..., min(max(distance, -REACH), REACH) + REACH] += weights.diagonal(distance, -2, -1).sum(-1)
    return sums


def _map(run: TwinTranslation, kind: str, head: Head) -> None:
    length = len(run.translation.labels(kind).queries)
    span = window_around(length, 0, CELLS)
    view = run.translation.head(kind, *head, window=Window(*span, *span))
    st.markdown(f"**{title(run.name)}** · {labels.head_name(*head)}")
    panel(
        f"map-{run.name}",
        lambda: heatmap(view, MAP),
        captions.caption(view, whole=(length, length)).replace("{step}", ""),
        alt=captions.summary(view),
        audit=view.audit,
    )
