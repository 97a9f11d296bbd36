"""The held-out pair of a run under its last checkpoint: computed once, and then kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from safetensors import safe_open

from explorer.app.server.stores import declare, kept
from explorer.app.server.workshop.run import TrainingRun
from transformer import Translation, Translator
from transformer.config import AttentionKind, Head
from transformer.storage.description import WEIGHTS_FILE
from transformer.storage.directory import load_checkpoint

KIND = "cross"

_LOOKS = declare("looks", 4)


@dataclass(frozen=True)
class PairLook:
    """A pair at one checkpoint."""

    step: int  # the step of its weights
    # the right output, forced, so that rows and columns stay from checkpoint to checkpoint
    forced: Translation
    written: str  # what the model writes on its own
    telling: Head  # the head of cross-attention whose rows differ most, see ``difference``


def look(run: TrainingRun) -> PairLook | None:
    """The pair at the last checkpoint; None if there is none yet.

    Raises:
        ValueError: The checkpoint is damaged.
    """
    if not run.has_model:
        return None
    changed = (run.directory / WEIGHTS_FILE).stat().st_mtime_ns
    found: PairLook = kept(_LOOKS).get((str(run.directory), changed), lambda: _look(run))
    return found


def _look(run: TrainingRun) -> PairLook:
    checkpoint = load_checkpoint(run.directory)
    with safe_open(run.directory / WEIGHTS_FILE, framework="pt") as file:
        step = int((file.metadata() or {}).get("step", 0))
    name = f"{run.asked.plan.task}, step {step:,}"
    model = Translator(checkpoint.translating, checkpoint.tokenizer, name=name)
    pair = run.asked.shown
    forced = model.force(pair.source, pair.target)
    return PairLook(step, forced, model.translate(pair.source, capture=False).text, _telling(forced))


def difference(weights: np.ndarray) -> float:
    """Difference between the rows of a map (queries, keys), in nats: the information of a row about its key.

    It is the entropy of the mean row less the mean entropy of the rows: 0 if all rows are alike, and the
    logarithm of their number if each looks at a key of its own.
    """
    return float(_entropy(weights.mean(0)) - _entropy(weights).mean())


def _entropy(rows: np.ndarray) -> np.ndarray:
    return -(rows * np.log(np.maximum(rows, 1e-12))).sum(-1)


def _telling(run: Translation) -> Head:
    config = run.config
    heads = [
        (layer, head) for layer in range(config.stacks["decoder"].n_layers) for head in range(config.n_heads)
    ]
    return max(heads, key=lambda head: difference(run.weights(AttentionKind.CROSS, *head)))
