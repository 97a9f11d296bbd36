"""Any encoding as its class computes it: the picture of those that have none of their own."""

from __future__ import annotations

import streamlit as st
import torch

from explorer.app.address import State
from explorer.app.address.encodings import ENCODINGS
from explorer.app.controls import inform, panel
from explorer.app.views.positions.trained import bias_curves, distances, twin
from explorer.figures.base import labels
from explorer.figures.pages.positions import lines, table_map
from transformer.config import ModelConfig, TransformerConfig
from transformer.encodings import PositionalEncoding, make_positions
from transformer.training.presets import TWINS


@torch.inference_mode()
def show(name: str, now: State) -> None:
    """Draws what an encoding adds or rotates; one that is trained is that of its twin."""
    config: ModelConfig = TransformerConfig.from_dict(TWINS[f"positions-{name}"].sizes)
    made = {side: make_positions(config, causal=side == "decoder") for side in ("encoder", "decoder")}
    where = "by formula"
    if any(True for each in made.values() for _ in each.parameters()):
        if (network := twin(name)) is None:
            return
        made = {"encoder": network.stack("encoder").positions, "decoder": network.stack("decoder").positions}
        where, config = f"positions/{name}, as trained", network.config
    for column, (side, encoding) in zip(st.columns(2), made.items(), strict=True):
        with column:
            _draw(name, side, encoding, config, now, where)


def _draw(
    name: str, side: str, encoding: PositionalEncoding, config: ModelConfig, now: State, where: str
) -> None:
    count, acts = min(now.positions, config.max_positions), ENCODINGS[name].acts
    if acts == "embeddings" and (table := encoding.added(count)) is not None:
        panel(
            f"table-{side}",
            lambda: table_map(table.numpy(), 1, "position", "dimension"),
            f"What is added in the {side}: {count} positions × {table.shape[1]} dimensions · {where}",
            alt=f"A table of {count} rows.",
            sentence=False,
        )
    elif acts == "rotation":
        turned = encoding.rotate(torch.full((1, 1, count, config.d_head), config.d_head**-0.5))[0, 0]
        panel(
            f"products-{side}",
            lambda: lines(range(count), {"q · k": (turned @ turned[0]).numpy()}, ("distance", "product")),
            f"Product of a query and an equal key at a distance in the {side} · {where}",
            alt="A curve that starts at 1.",
            sentence=False,
        )
    elif acts == "scores" and (rule := encoding.bias(0)) is not None:
        if rule.divided:
            inform("What is added depends on the query. “Side by side” shows it for one word.")
            return
        last = encoding.bias(config.sizes[side][0] - 1)
        layers = "every layer" if last and torch.equal(rule.table, last.table) else "the first layer"
        span = torch.from_numpy(distances(side))
        query = torch.zeros(config.n_heads, 1, config.d_head)
        biases = rule.scores(query, -span[:1], span - span[0])[:, 0].numpy()
        series = {f"head {labels.count(head)}": row for head, row in enumerate(biases)}
        bias_curves(side, series, f"Bias by distance in {layers} of the {side} · {where}")
