"""The held-out pair of a run under its last checkpoint: computed once, and then kept."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import streamlit as st
from safetensors import safe_open

from explorer.app.server.workshop.run import TrainingRun
from transformer import Translation, Translator
from transformer.config import AttentionKind, Head
from transformer.storage.description import WEIGHTS_FILE
from transformer.storage.directory import load_checkpoint

KIND = "cross"


@dataclass(frozen=True)
class PairLook:
    """A pair at one checkpoint."""

    step: int  # the step of its weights
    # the right output, forced, so that rows and columns stay from checkpoint to checkpoint
    forced: Translation
    written: str  # what the model writes on its own
    telling: Head  # the head of cross-attention whose rows differ most, see ``difference``


def look(run: TrainingRun) -> PairLook | None:
    """The pair at the last checkpoint; None if there is none yet, ValueError if it is damaged."""
    if not run.has_model:
        return None
    return _look(str(run.directory), (run.directory / WEIGHTS_FILE).stat().st_mtime_ns, run)


@st.cache_resource(show_spinner=False, max_entries=4)
def _look(directory: str, changed: int, _run: TrainingRun) -> PairLook:
    checkpoint = load_checkpoint(_run.directory)
    with safe_open(_run.directory / WEIGHTS_FILE, framework="pt") as file:
        step = int((file.metadata() or {}).get("step", 0))
    name = f"{_run.asked.plan.task}, step {step:,}"
    model = Translator(checkpoint.translating, checkpoint.tokenizer, name=name)
    pair, config = _run.asked.shown, checkpoint.translating.config
    forced = model.force(pair.source, pair.target)
    heads = list(product(range(config.stacks["decoder"].n_layers), range(config.n_heads)))
    telling = max(heads, key=lambda head: difference(forced.weights(AttentionKind.CROSS, *head)))
    return PairLook(step, forced, model.translate(pair.source, capture=False).text, telling)


def difference(weights: np.ndarray) -> float:
    """Difference between the rows of a map (queries, keys), in nats: the information of a row about its key.

    It is the entropy of the mean row less the mean entropy of the rows: 0 if all rows are alike, and the
    logarithm of their number if each looks at a key of its own.
    """
    return float(_entropy(weights.mean(0)) - _entropy(weights).mean())


def _entropy(rows: np.ndarray) -> np.ndarray:
    return -(rows * np.log(np.maximum(rows, 1e-12))).sum(-1)
