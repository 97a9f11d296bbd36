"""T5 and its kin: T5 1.0 and 1.1, FLAN-T5, mT5, MADLAD.

Against the paper's Transformer: RMSNorm before each sub-layer, no biases, scores that are not
divided by √d_k, and relative positions in buckets, one table for all layers of a stack (Raffel et
al. 2020, 2.1).
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from transformer.config import TransformerConfig
from transformer.families.family import Family, Json, built, every_part, require, row_of, taken
from transformer.families.pieces import SETTINGS_FILE, languages_of, read_pieces, settings_of
from transformer.storage.files import CheckpointError
from transformer.text.tokenizer import Vocabulary
from transformer.text.words import EOS, PAD, UNK

FIELDS: dict[str, tuple[str, Any]] = {
    "vocab_size": ("vocab_size", 32_128),
    "d_model": ("d_model", 512),
    "head_width": ("d_kv", 64),
    "d_ff": ("d_ff", 2048),
    "n_heads": ("num_heads", 8),
    "n_encoder_layers": ("num_layers", 6),
    "dropout": ("dropout_rate", 0.1),
    "norm_epsilon": ("layer_norm_epsilon", 1e-6),
    "pad_id": ("pad_token_id", 0),
    "eos_id": ("eos_token_id", 1),
    "trained_length": ("n_positions", None),
}
"""Maps our field to their name and the reference's default, used if config.json lacks the entry."""
OF_MT5: dict[str, Any] = {
    "vocab_size": 250_112,
    "d_ff": 1024,
    "num_layers": 8,
    "num_heads": 6,
    "feed_forward_proj": "gated-gelu",
}
"""Other defaults of ``model_type`` "mt5"."""
FEED_FORWARD = {
    "relu": ("relu", False),
    "gelu": ("gelu", False),
    "gelu_new": ("gelu_tanh", False),
    "silu": ("silu", False),
    "gated-relu": ("relu", True),
    "gated-gelu": ("gelu_tanh", True),
    "gated-silu": ("silu", True),
}
"""Their name of a feed-forward network: our activation, and whether it is gated."""
REQUIRED: dict[str, object] = {
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "is_encoder_decoder": True,
}
"""Entries whose other values would mean another architecture."""
CHOICES: Json = {
    "norm": "pre",
    "norm_by": "rms",
    "biases": False,
    "scaled_scores": False,
    "positions": "t5",
    "scaled_embeddings": False,
    "unk_id": 2,
    "task": "write",
}
"""What all of them have in common."""
PROMPTS = (
    "translate English to German: ",
    "translate English to French: ",
    "translate English to Romanian: ",
    "summarize: ",
)
"""Beginnings of texts of T5 1.0's training, offered if config.json names none."""
MOST_PROMPTS = 8


def config(values: Json, path: Path) -> TransformerConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is out of range or
    unsupported."""
    multilingual = values.get("model_type") == "mt5"
    values = (OF_MT5 if multilingual else {}) | values
    require(values, REQUIRED, path)
    name = values.get("feed_forward_proj", "relu")
    (activation, gated) = row_of(FEED_FORWARD, name, "feed-forward network", path)
    ours = taken(values, FIELDS) | CHOICES | {"activation": activation, "gated": gated}
    depth = values.get("num_decoder_layers")
    start = values.get("decoder_start_token_id")
    ours["n_decoder_layers"] = ours["n_encoder_layers"] if depth is None else depth
    ours["bos_id"] = ours["pad_id"] if start is None else start
    ours["tied_embeddings"] = values.get("tie_word_embeddings") is not False
    # T5 1.0 divides the output by √d_model; 1.1 says that its tables are not tied. transformers 5
    # ties every T5, so that what it saves says so, and what was meant stands in a second entry.
    scales = values.get("scale_decoder_outputs")
    scales = scales if isinstance(scales, bool) else ours["tied_embeddings"]
    ours["scaled_output"] = scales and not multilingual
    ours["prompts"] = "\n".join(() if multilingual else _prompts(values) or PROMPTS)
    return built(ours, path)


def _prompts(values: Json) -> tuple[str, ...]:
    """The beginnings of texts that config.json names for the tasks of its model."""
    tasks = values.get("task_specific_params")
    listed = tasks.values() if isinstance(tasks, dict) else ()
    prefixes = [task.get("prefix") for task in listed if isinstance(task, dict)]
    usable = (
        prefix
        for prefix in prefixes
        if isinstance(prefix, str) and prefix.strip() and prefix.isprintable()
    )
    return tuple(dict.fromkeys(prompt[:80] for prompt in usable))[:MOST_PROMPTS]


SHARED, OUTPUT = "shared.weight", "lm_head.weight"
SOURCE, TARGET = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"


def tables(config: TransformerConfig) -> list[tuple[str, ...]]:
    """For the tables of source, target and output: the names under which a file may hold each."""
    output = (OUTPUT, SHARED, TARGET, SOURCE) if config.tied_embeddings else (OUTPUT,)
    return [(SOURCE, SHARED, TARGET), (TARGET, SHARED, SOURCE), output]


def names(config: TransformerConfig) -> dict[str, str]:
    """Our name of every weight besides the tables → theirs; positions stand with a stack's first
    layer."""
    encoder = _parts(config, self_attention="SelfAttention")
    decoder = _parts(config, self_attention="SelfAttention", cross_attention="EncDecAttention")
    parts = dict(every_part(config, "{}.block.{}", encoder, decoder))
    for side in ("encoder", "decoder"):
        parts[f"{side}.positions"] = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias"
        parts[f"{side}.final_norm"] = f"{side}.final_layer_norm"
    return {f"{ours}.weight": f"{theirs}.weight" for ours, theirs in parts.items()}


def _parts(config: TransformerConfig, **attentions: str) -> dict[str, str]:
    """Our part of a layer → theirs; ``attentions`` are its kinds in their order, each by our
    name."""
    inner = {"gate": "wi_0", "inner": "wi_1"} if config.gated else {"inner": "wi"}
    projections = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "out_proj": "o"}
    sublayers = [(*names, projections) for names in attentions.items()]
    sublayers.append(("feed_forward", "DenseReluDense", inner | {"outer": "wo"}))
    parts = dict[str, str]()
    for at, (ours, theirs, weights) in enumerate(sublayers):
        parts |= {f"{ours}.{our}": f"layer.{at}.{theirs}.{their}" for our, their in weights.items()}
        parts[f"{ours}_residual.norm"] = f"layer.{at}.layer_norm"
    return parts


PIECES_FILE = "spiece.model"
EXTRA_IDS = 100
"""Extra ids of a tokenizer whose settings do not say how many it has."""
_EXTRA = re.compile(r"<extra_id_\d+>")


def vocabulary(directory: Path, config: TransformerConfig) -> tuple[Vocabulary, TransformerConfig]:
    """The vocabulary of a directory: pieces, and extra ids behind them, last one first.

    CheckpointError if a file is missing, damaged or too large, or there are more pieces than rows.
    """

    def order(pieces: list[str]) -> dict[str, int]:
        extra = (f"<extra_id_{number}>" for number in reversed(range(_extra_ids(directory))))
        return {piece: number for number, piece in enumerate(dict.fromkeys((*pieces, *extra)))}

    path = directory / PIECES_FILE
    pieces = read_pieces(path, config.vocab_size, order, "extra ids", (EOS, UNK, PAD))
    into = languages_of(pieces, "<2")
    if into:  # MADLAD translates
        config = replace(config, task="translate", languages=" ".join(into), prompts="")
    return Vocabulary(pieces, pieces, into), config


def _extra_ids(directory: Path) -> int:
    """Number of extra ids that the tokenizer's settings ask for; CheckpointError if it is not
    one."""
    settings = settings_of(directory)
    special = settings.get("additional_special_tokens")
    listed = (
        [piece for piece in special if _EXTRA.fullmatch(str(piece))]
        if isinstance(special, list)
        else ()
    )
    count = settings.get("extra_ids", len(listed) or EXTRA_IDS)
    if type(count) is not int or not 0 <= count <= 10_000:
        raise CheckpointError(
            f"{directory / SETTINGS_FILE} says extra_ids = {count!r:.80}; it must be from 0 to "
            "10,000."
        )
    return count


T5 = Family(
    name="T5 (FLAN-T5, mT5, MADLAD)",
    types=("t5", "mt5"),
    files=(PIECES_FILE,),
    tokenizers=("T5Tokenizer", "MT5Tokenizer"),
    config=config,
    names=names,
    tables=tables,
    vocabulary=vocabulary,
    prefix="",
)
