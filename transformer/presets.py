"""Named settings of `train`: sizes, training options, shares of augmented pairs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Preset:
    """Where the options of one `train` command start.

    Attributes:
        sizes: Fields of `TransformerConfig`.
        options: Fields of `TrainingOptions`.
        shares: Extra pairs per given pair, by the names in `transformer.augment.MAKERS`.
    """

    sizes: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)


_PAPER = {"batch_positions": 25_000, "schedule": "inverse_sqrt", "learning_rate": 1.0, "warmup": 4000}

PRESETS: dict[str, Preset] = {
    "en-de": Preset(
        sizes={
            "vocab_size": 8000,
            "d_model": 256,
            "d_ff": 1024,
            "n_heads": 8,
            "n_encoder_layers": 3,
            "n_decoder_layers": 3,
            "norm": "pre",
        },
        options={"steps": 8000},
        shares={"join": 0.05, "plain": 0.08, "typed": 0.05},
    ),
    "tiny": Preset(
        sizes={
            "vocab_size": 400,
            "d_model": 32,
            "d_ff": 64,
            "n_heads": 4,
            "n_encoder_layers": 2,
            "n_decoder_layers": 2,
            "norm": "pre",
        },
        options={
            "steps": 200,
            "warmup": 20,
            "evaluate_every": 100,
            "checkpoint_every": 50,
            "batch_positions": 512,
        },
    ),
    "paper-base": Preset(
        sizes={"vocab_size": 37_000}, options={**_PAPER, "steps": 100_000, "weight_decay": 0.0}
    ),
    "paper-big": Preset(
        sizes={"vocab_size": 37_000, "d_model": 1024, "d_ff": 4096, "n_heads": 16, "dropout": 0.3},
        options={**_PAPER, "steps": 300_000, "weight_decay": 0.0},
    ),
}
