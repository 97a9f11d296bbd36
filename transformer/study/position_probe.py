"""Whether a token's position can be read from the encoder's output: a linear probe of every twin.

Cross-attention reads keys and values from that output. A high value shows that positions are there to be
read, even if the encoding is applied in no cross-attention. It does not show that the decoder reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from transformer.study.bootstrap import Floats, compare, ratio
from transformer.text.pairs import SentencePair
from transformer.translate.translator import Translator

Json = dict[str, Any]
RIDGE = 1e-3
"""Penalty of the fit, as a share of the outputs' mean variance."""
Sentences = list[tuple[Floats, Floats]]
"""Per sentence the encoder's output (tokens, d_model) and the position of each token (tokens,)."""


def position_probes(twins: dict[str, Translator], pairs: Sequence[SentencePair]) -> Json:
    """R² of a linear probe that reads each source token's position from the encoder's output.

    The probe is fitted on every other sentence and measured on the rest. `</s>` is left out, because its
    embedding alone tells that it stands at the end.
    """
    tables = {name: _explained(_outputs(twin, pairs)) for name, twin in twins.items()}
    found = {name: each["value"] for name, each in compare(tables, ratio).items()}
    return {"sentences": len(pairs), "models": found}


@torch.inference_mode()
def _outputs(twin: Translator, pairs: Sequence[SentencePair]) -> Sentences:
    found = []
    for pair in pairs:
        ids = torch.tensor([[*twin.ids(pair.source), twin.config.eos_id]], device=twin.device)
        output = twin.model.encode(ids)[0, :-1].double().cpu().numpy()
        found.append((output, np.arange(len(output), dtype=np.float64)))
    return found


def _explained(sentences: Sentences) -> Floats:
    """(held-out sentences, 2): squares that the probe explains, and all squares, around the fitted mean."""
    weights, centre, mean = _fit(sentences[0::2])
    rows = []
    for output, positions in sentences[1::2]:
        missed = ((output - centre) @ weights + mean - positions) ** 2
        spread = (positions - mean) ** 2
        rows.append((spread.sum() - missed.sum(), spread.sum()))
    return np.array(rows)


def _fit(sentences: Sentences) -> tuple[Floats, Floats, float]:
    """Ridge regression: weights (d_model,), the outputs' mean (d_model,), and the positions' mean."""
    outputs = np.concatenate([output for output, _ in sentences])
    positions = np.concatenate([positions for _, positions in sentences])
    centre, mean = outputs.mean(0), float(positions.mean())
    centred = outputs - centre
    penalty = RIDGE * len(centred) * centred.var(0).mean()
    square = centred.T @ centred + penalty * np.eye(centred.shape[1])
    return np.linalg.solve(square, centred.T @ (positions - mean)), centre, mean
