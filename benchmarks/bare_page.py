"""The reference of `python -m benchmarks app`: a bare page with a text input and the app's maps.

It imports PyTorch only if it is told so: `streamlit run benchmarks/bare_page.py -- torch`. With
`?tokens=32`, the maps are those of the app at that length, with labels, mask and hover texts. The
button redraws them one step later with `st.plotly_chart`, as a page without a linked view must.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import streamlit as st

ROOT = Path(__file__).resolve().parents[1]
AXES = {
    "encoder": ("source_tokens", "source_tokens"),
    "decoder": ("decoder_input_tokens", "decoder_input_tokens"),
    "cross": ("target_tokens", "source_tokens"),
}


def first_map(kind: str, moved: int) -> go.Figure:
    """A map of the example that the app opens with; another text moves its columns."""
    layer, head = json.loads((ROOT / "assets/models/en-de/heads.json").read_text())["default"][kind]
    with np.load(ROOT / "assets/models/en-de/first.npz") as file:
        run = json.loads(file["head"].tobytes())["run"]
        weights = file[f"{kind}.weights"][layer, head]
    rows, columns = (run[name] for name in AXES[kind])
    figure = go.Figure(
        go.Heatmap(z=np.roll(weights, moved, 1), colorscale="Blues", showscale=False)
    )
    figure.update_xaxes(
        tickvals=list(range(len(columns))), ticktext=columns, side="top", tickangle=-90
    )
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=rows, autorange="reversed")
    return figure


def app_map(kind: str, tokens: int, step: int) -> go.Figure:
    """A map of the app, with the rows after the step faded and the row of the step ringed."""
    from explorer.figures import heatmap
    from transformer.config import AttentionKind
    from transformer.view import AuditReport, HeadMap, Window

    names = tuple(f"▁word{i}" for i in range(tokens))
    mask = np.tri(tokens, dtype=bool) if kind == "decoder" else np.ones((tokens, tokens), bool)
    weights = np.random.default_rng(1).random((tokens, tokens), np.float32) * mask
    weights /= weights.sum(1, keepdims=True)
    window = Window(0, tokens, 0, tokens)
    view = HeadMap(
        kind=AttentionKind(kind),
        layer=0,
        head=0,
        model="",
        norm="pre",
        query_tokens=names,
        predicted_tokens=None if kind == "encoder" else names,
        key_tokens=names,
        window=window,
        scores=weights,
        mask=mask,
        weights=weights,
        report=AuditReport(()),
    )
    figure = heatmap(view)
    later = np.ones_like(weights[step + 1 :])
    figure.add_trace(
        go.Heatmap(z=later, y0=step + 1, dy=1, opacity=0.25, showscale=False, hoverinfo="skip")
    )
    figure.add_shape(type="rect", x0=-0.5, x1=tokens - 0.5, y0=step - 0.5, y1=step + 0.5)
    return figure


@st.fragment
def maps(text: str, tokens: int | None) -> None:
    """Draws the three maps."""
    step = st.session_state.setdefault("step", 0)
    if st.button("next"):
        st.session_state["step"] = step = step + 1
    for kind, column in zip(("encoder", "decoder", "cross"), st.columns(3), strict=True):
        figure = first_map(kind, len(text)) if tokens is None else app_map(kind, tokens, step)
        figure.update_layout(title=f"{text} {step}", height=330)
        column.plotly_chart(figure, key=kind)


if "torch" in sys.argv[1:]:
    import_module("torch")
st.set_page_config(layout="wide")
tokens_given = st.query_params.get("tokens")
maps(st.text_input("Sentence", "one"), int(tokens_given) if tokens_given else None)
