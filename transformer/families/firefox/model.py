"""Loads a translation model of Firefox into our own Transformer: tables map its sizes and weight names.

Such a model is a post-norm Transformer whose decoder has a simple recurrent unit (``transformer.model.ssru``)
instead of masked self-attention. The rest are values of ``TransformerConfig``: the layout of the sinusoids, a
start without a token, padding that is no piece, a bias on the logits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from transformer.decode.rules import SearchRules
from transformer.families.family import every_part
from transformer.families.firefox.config import (
    OUTPUT_BIAS,
    OUTPUT_TABLE,
    SHARED_TABLE,
    SOURCE_TABLE,
    TABLES,
    TARGET_TABLE,
    firefox_config,
    read_vocabulary,
)
from transformer.families.firefox.folder import MODEL, only, unpacked
from transformer.families.firefox.items import Items
from transformer.model.config import TransformerConfig
from transformer.model.packed import for_few_rows
from transformer.model.transformer import Transformer
from transformer.storage.description import read_card, read_heads
from transformer.storage.directory import Checkpoint, empty_model
from transformer.storage.files import CheckpointError
from transformer.storage.means import read_means

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
    """Reads a folder with a model and its vocabularies, as Firefox downloads them, or a zip or tar of it.

    Sizes and offsets are checked before memory is allocated. CheckpointError if a file is missing, damaged,
    of another model, or needs an unsupported feature.
    """
    with unpacked(Path(path)) as directory:
        try:
            return _load(directory)
        except CheckpointError as error:
            raise CheckpointError(str(error).replace(str(directory), str(path))) from error


def _load(directory: Path) -> Checkpoint:
    items, tokenizer = Items(only(directory, MODEL)), read_vocabulary(directory)
    config = firefox_config(items, tokenizer)
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
    rules = SearchRules(forbidden=((config.unk_id,),))
    heads, means = read_heads(directory), read_means(directory, config)
    return Checkpoint(config, model, tokenizer, heads, read_card(directory), rules, means=means)


def weight_names(config: TransformerConfig) -> dict[str, str]:
    """Maps our name of every weight to theirs."""
    layers = {
        f"{stack}.layers.{layer}.{ours}": f"{stack}_l{layer + 1}_{theirs}"
        for stack, layer, ours, theirs in every_part(config, ENCODER_PARTS, DECODER_PARTS)
    }
    tables = {"embedding.weight": SHARED_TABLE if config.shared_embeddings else SOURCE_TABLE}
    if not config.shared_embeddings:
        tables["target_embedding.weight"] = TARGET_TABLE
    if not config.tied_embeddings:
        tables["output.weight"] = OUTPUT_TABLE
    return tables | layers | ({"output_bias": OUTPUT_BIAS} if config.output_bias else {})


def _weight(items: Items, name: str, shape: tuple[int, ...]) -> Tensor:
    """An item as a weight of ours: matrices as (outputs, inputs), vectors without their first dimension."""
    table = name in TABLES
    stored = items.found[name].shape
    wanted = shape if table else shape[::-1] if len(shape) == 2 else (1, *shape)
    if stored != wanted:
        raise CheckpointError(
            f"{items.path}: the weight {name} has the shape {stored}, but the settings ask for {wanted}."
        )
    found = torch.from_numpy(np.ascontiguousarray(items.numbers(name, rows_are_outputs=not table)))
    return found if table else for_few_rows(found.t()) if len(shape) == 2 else found[0]
