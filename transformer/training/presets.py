"""Settings of `train`: by name, and as the command on a model's card states them."""

from dataclasses import dataclass, field
from typing import Any, get_args

from transformer.config import ENCODINGS, Score


@dataclass(frozen=True)
class Preset:
    """Default options of one `train` command."""

    sizes: dict[str, Any]  # fields of a model's config
    options: dict[str, Any] = field(default_factory=dict)  # fields of `TrainingOptions`
    # extra pairs per given pair, by the names in `transformer.training.augment.MAKERS`
    shares: dict[str, float] = field(default_factory=dict)


def _sizes(vocab_size: int, d_model: int, d_ff: int, n_heads: int, layers: int) -> dict[str, Any]:
    """Sizes of a pre-norm Transformer with as many layers on either side."""
    widths = {"vocab_size": vocab_size, "d_model": d_model, "d_ff": d_ff, "n_heads": n_heads}
    return {**widths, "n_encoder_layers": layers, "n_decoder_layers": layers, "norm": "pre"}


_TWIN_SIZES = _sizes(vocab_size=4000, d_model=112, d_ff=384, n_heads=4, layers=3)
_TWIN_OPTIONS = {"steps": 3000, "learning_rate": 3e-3, "warmup": 400, "evaluate_every": 1000}
# a learned table needs few rows in training, and few rows make a small file
_TABLE_SIZES = {"learned": {"max_positions": 256}}
TWINS = {
    f"positions-{name}": Preset(
        _TWIN_SIZES | {"positions": name} | _TABLE_SIZES.get(name, {}), _TWIN_OPTIONS
    )
    for name in ENCODINGS
}
"""The positional twins: one per encoding, pre-norm."""
RECURRENT = {
    f"recurrent-{score}": Preset(
        {"architecture": "recurrent", "vocab_size": 4000, "d_model": 168, "score": score},
        _TWIN_OPTIONS,
    )
    for score in get_args(Score)
}
"""The recurrent twins: one per score. Smaller than the positional twins, trained as these are."""
_PAPER = {
    "batch_positions": 25_000,
    "schedule": "inverse_sqrt",
    "learning_rate": 1.0,
    "warmup": 4000,
}
PRESETS: dict[str, Preset] = {
    **TWINS,
    "positions-postnorm": Preset(
        _TWIN_SIZES | {"positions": "sinusoidal", "norm": "post"},
        _TWIN_OPTIONS | {"learning_rate": 2e-3, "warmup": 800},
    ),
    **RECURRENT,
    "en-de": Preset(
        _sizes(vocab_size=8000, d_model=256, d_ff=1024, n_heads=8, layers=3),
        {"steps": 8000},
        shares={"join": 0.05, "plain": 0.08, "typed": 0.05, "swap": 0.05},
    ),
    "toy": Preset(
        {**_sizes(vocab_size=400, d_model=48, d_ff=96, n_heads=4, layers=2), "dropout": 0.0},
        {
            "steps": 1000,
            "learning_rate": 5e-3,
            "warmup": 100,
            "label_smoothing": 0.0,
            "average_decay": 0.99,
            "evaluate_every": 50,
            "checkpoint_every": 50,
            "batch_positions": 1024,
        },
    ),
    "tiny": Preset(
        _sizes(vocab_size=400, d_model=32, d_ff=64, n_heads=4, layers=2),
        {
            "steps": 200,
            "warmup": 20,
            "evaluate_every": 100,
            "checkpoint_every": 50,
            "batch_positions": 512,
        },
    ),
    "paper-base": Preset({"vocab_size": 37_000}, {**_PAPER, "steps": 100_000, "weight_decay": 0.0}),
    "paper-big": Preset(
        {"vocab_size": 37_000, "d_model": 1024, "d_ff": 4096, "n_heads": 16, "dropout": 0.3},
        {**_PAPER, "steps": 300_000, "weight_decay": 0.0},
    ),
}


def preset_name(name: str | None, toy: str | None) -> str:
    """The preset of a command that may leave it out, or name a toy task instead."""
    return name or ("toy" if toy else "en-de")
