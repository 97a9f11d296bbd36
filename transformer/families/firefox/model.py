"""Loads a translation model of Firefox into our own Transformer: tables map its sizes and weight names.

Such a model is a post-norm Transformer whose decoder has a simple recurrent unit (``transformer.model.ssru``)
instead of masked self-attention. The rest are values of ``TransformerConfig``: the layout of the sinusoids, a
start without a token, padding that is no piece, a bias on the logits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from transformer.families.firefox.items import Items
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer, input_major
from transformer.storage.description import check_parameters, read_card, read_heads
from transformer.storage.directory import Checkpoint, empty_model
from transformer.storage.files import CheckpointError
from transformer.storage.means import read_means
from transformer.text.vocabulary import Tokenizer, TokenizerError

SETTINGS = "special:model.yml"
MAX_VOCABULARY_BYTES = 16 * 2**20
MAX_POSITIONS = 2048
_SETTING = re.compile(r"^([\w-]+):[ \t]*(.*?)[ \t]*$", re.MULTILINE)

SIZES = {
    "d_model": "dim-emb",
    "d_ff": "transformer-dim-ffn",
    "n_heads": "transformer-heads",
    "n_encoder_layers": "enc-depth",
    "n_decoder_layers": "dec-depth",
}
"""Maps our size to its name in the settings."""
REQUIRED = {
    "type": "transformer",
    "transformer-preprocess": '""',
    "transformer-postprocess": "dan",
    "transformer-postprocess-top": '""',
    "transformer-decoder-autoreg": "rnn",
    "dec-cell": "ssru",
    "transformer-ffn-depth": "2",
    "transformer-no-projection": "false",
    "transformer-train-position-embeddings": "false",
    "transformer-tied-layers": "[]",
    "layer-normalization": "false",
}
"""Settings of the architecture; any other value would mean another one."""

_ATTENTION = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "out_proj": "o"}


def _attention(ours: str, theirs: str) -> dict[str, str]:
    """The names of an attention sub-layer and the LayerNorm after it."""
    found = {f"{ours}.{part}.weight": f"{theirs}_W{letter}" for part, letter in _ATTENTION.items()}
    found |= {f"{ours}.{part}.bias": f"{theirs}_b{letter}" for part, letter in _ATTENTION.items()}
    return found | _norm(f"{ours}_residual", f"{theirs}_Wo")


def _norm(ours: str, theirs: str) -> dict[str, str]:
    return {f"{ours}.norm.weight": f"{theirs}_ln_scale", f"{ours}.norm.bias": f"{theirs}_ln_bias"}


_FEED_FORWARD = {
    "feed_forward.inner.weight": "ffn_W1",
    "feed_forward.inner.bias": "ffn_b1",
    "feed_forward.outer.weight": "ffn_W2",
    "feed_forward.outer.bias": "ffn_b2",
    **_norm("feed_forward_residual", "ffn_ffn"),
}
ENCODER_PARTS = _attention("self_attention", "self") | _FEED_FORWARD
DECODER_PARTS = {
    "recurrence.input.weight": "rnn_W",
    "recurrence.forget.weight": "rnn_Wf",
    "recurrence.forget.bias": "rnn_bf",
    **_norm("recurrence_residual", "rnn_ffn"),
    **_attention("cross_attention", "context"),
    **_FEED_FORWARD,
}
"""Maps our part of a layer to theirs."""


def load_firefox(path: str | Path) -> Checkpoint:
    """Reads a folder with ``model.*.bin`` and ``vocab.*.spm``, as Firefox downloads them.

    Sizes and offsets are checked before memory is allocated.

    Raises:
        CheckpointError: A file is missing, damaged, of another model, or needs an unsupported feature.
    """
    directory = Path(path)
    items = Items(_only(directory, "model.*.bin"))
    tokenizer = _read_vocabulary(_only(directory, "vocab.*.spm"))
    config = firefox_config(items, tokenizer)
    check_parameters(items.path, config)
    names = weight_names(config)
    lacking = sorted(set(names.values()) - set(items.found))
    if lacking:
        raise CheckpointError(
            f"{items.path} lacks {len(lacking)} of the weights that its settings ask for; "
            f"the first is {lacking[0]}."
        )
    model = empty_model(directory, config)
    assert isinstance(model, Transformer)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    state = {ours: _weight(items, theirs, expected[ours]) for ours, theirs in names.items()}
    model.load_state_dict(state, assign=True)
    model.requires_grad_(False).eval()
    heads, means = read_heads(directory), read_means(directory, config)
    return Checkpoint(config, model, tokenizer, heads, read_card(directory), means=means)


def is_firefox(path: str | Path) -> bool:
    """Whether a directory holds a model in Firefox's format."""
    directory = Path(path)
    return any(directory.glob("model.*.bin")) and any(directory.glob("*vocab.*.spm"))


def firefox_config(items: Items, tokenizer: Tokenizer) -> TransformerConfig:
    """Converts the settings inside a model to our config.

    Raises:
        CheckpointError: A setting is missing, out of range, or names an unsupported architecture.
    """
    settings = dict(_SETTING.findall(items.text(SETTINGS)))
    for name, required in REQUIRED.items():
        if settings.get(name, required) != required:
            raise CheckpointError(
                f"{items.path} says {name}: {settings[name]:.80}; only {required} is supported."
            )
    try:
        sizes = {ours: int(settings[theirs]) for ours, theirs in SIZES.items()}
        names = ("pad_id", "bos_id", "eos_id", "unk_id")
        special = dict(zip(names, tokenizer.special, strict=True))
        return TransformerConfig.from_dict(
            {
                **sizes,
                **special,
                "vocab_size": tokenizer.vocab_size,
                "activation": settings.get("transformer-ffn-activation", "relu"),
                "norm": "post",
                "sine_layout": "inclusive",
                "decoder_unit": "ssru",
                "dropout": 0.0,
                "output_bias": settings.get("output-omit-bias") != "true",
                "max_positions": MAX_POSITIONS,
            }
        )
    except KeyError as error:
        raise CheckpointError(f"{items.path} does not say its {error.args[0]}.") from error
    except ValueError as error:
        raise CheckpointError(f"{items.path} describes no usable model: {error}") from error


def weight_names(config: TransformerConfig) -> dict[str, str]:
    """Maps our name of every weight to theirs."""
    stacks = {
        "encoder": (config.n_encoder_layers, ENCODER_PARTS),
        "decoder": (config.n_decoder_layers, DECODER_PARTS),
    }
    layers = {
        f"{stack}.layers.{layer}.{ours}": f"{stack}_l{layer + 1}_{theirs}"
        for stack, (depth, parts) in stacks.items()
        for layer in range(depth)
        for ours, theirs in parts.items()
    }
    bias = {"output_bias": "decoder_ff_logit_out_b"} if config.output_bias else {}
    return {"embedding.weight": "Wemb"} | layers | bias


def _weight(items: Items, name: str, shape: tuple[int, ...]) -> Tensor:
    """An item as a weight of ours: matrices as (outputs, inputs), vectors without their first dimension."""
    table = name.endswith("Wemb")
    stored = items.found[name].shape
    wanted = shape if table else shape[::-1] if len(shape) == 2 else (1, *shape)
    if stored != wanted:
        raise CheckpointError(
            f"{items.path}: the weight {name} has the shape {stored}, but the settings ask for {wanted}."
        )
    found = torch.from_numpy(np.ascontiguousarray(items.numbers(name, rows_are_outputs=not table)))
    return found if table else input_major(found.t()) if len(shape) == 2 else found[0]


def _only(directory: Path, pattern: str) -> Path:
    found: Iterator[Path] = iter(sorted(directory.glob(pattern)))
    first, second = next(found, None), next(found, None)
    if first is None:
        raise CheckpointError(f"{directory} has no {pattern}, so it is no complete model of Firefox.")
    if second is not None:
        raise CheckpointError(
            f"{directory} has {first.name} and {second.name}; leave only the files of one model."
        )
    return first


def _read_vocabulary(path: Path) -> Tokenizer:
    if path.stat().st_size > MAX_VOCABULARY_BYTES:
        raise CheckpointError(
            f"{path} is larger than 16 MiB, so it is not the vocabulary of a translation model."
        )
    try:
        return Tokenizer.load(path)
    except TokenizerError as error:
        raise CheckpointError(f"{path}: {error}") from error
