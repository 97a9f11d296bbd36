"""A family of encoders alone, as transformers and the Hub have them: its values, and how its config
is ours.

No PyTorch at import: a model is described without it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from transformer.config import EncoderConfig
from transformer.families.alone import (
    EMBEDDING,
    FIELDS,
    Layout,
    Source,
    StackFamily,
    both,
    number,
    of_layers,
    taken,
)
from transformer.families.family import Json, activation_of, require
from transformer.storage.files import CheckpointError

SEGMENTS, POSITIONS = "segments.weight", "encoder.positions.table"
"""Our names of the tables beside that of the pieces."""
REQUIRED: dict[str, object] = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
}
"""Entries whose other values would mean another architecture."""
OTHER_TASKS = r"(pre_)?classifier\.|qa_outputs\.|discriminator_predictions\."
"""What the names of weights begin with that answer something else than what a masked word is."""
UNREAD = r"pooler\.|embeddings\.(position|token_type)_ids"
"""What the names of tensors begin with that no attention and no masked word rests on."""


@dataclass(frozen=True, kw_only=True)
class Head:
    """Where a family's files hold what predicts masked words."""

    linear: str  # the linear map of the transform
    norm: str  # its norm
    output: str  # the output projection; without its weight in a file, the table of the pieces
    bias: str = ""  # what its bias is called in files in which the projection has none

    @property
    def table(self) -> str:
        """The weight of the output projection."""
        return f"{self.output}.weight"

    @property
    def biases(self) -> tuple[str, ...]:
        """What the bias of the output may be called, the likelier name first."""
        return tuple(filter(None, (f"{self.output}.bias", self.bias)))

    def sources(self, stored: Collection[str]) -> dict[str, Source]:
        """Our name of every weight that a file must hold, and where it does, by what is stored."""
        bias = next((name for name in self.biases if name in stored), self.biases[-1])
        return {
            **both("output_transform.linear", self.linear, biases=True),
            **both("output_transform.norm", self.norm, biases=True),
            "output_bias": Source(bias),
        }

    def names(self) -> set[str]:
        """Every name that its weights may have in a file."""
        sources = self.sources(self.biases)
        return {source.name for source in sources.values()} | {*self.biases, self.table}


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What stands around a text, and between two, if no file of the vocabulary says so."""

    begin: str  # the piece before a text
    end: str  # the piece behind each
    n_separators: int = 1  # ends between two texts
    n_segments: int = 2  # kinds of segments in a pair, which the model may tell apart


BERT_FRAME = Frame(begin="[CLS]", end="[SEP]")


@dataclass(frozen=True, kw_only=True)
class EncoderFamily(StackFamily[EncoderConfig]):
    """What opening an encoder alone asks of its family; ``sources`` leaves out the head."""

    head: Head
    frame: Frame = BERT_FRAME
    # classes of transformers that read a text as this package does by files without tokenizer.json
    tokenizers: tuple[str, ...]
    placeless: str = ""  # the piece that has no position, which no text may hold


def encoder_config(ours: Json, path: Path) -> EncoderConfig:
    """The config of our fields; CheckpointError if one is of another kind or out of range.

    The ids of the special tokens only the vocabulary knows: here an end that is no pad, and one
    past the last piece for all others.
    """
    size = ours["vocab_size"]
    common = {
        "dropout": 0.0,
        "positions": "learned",
        "output_transform": True,
        "output_bias": True,
        "eos_id": 0,
        "bos_id": size,
        "pad_id": size,
        "unk_id": size,
    }
    try:
        return EncoderConfig(**common | ours)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path} describes no usable model: {error}") from error


def bert_entries(values: Json, path: Path) -> Json:
    """Entries of BERT's ``config.json``, and of those like it, as our fields; CheckpointError if
    one is unsupported."""
    return taken(values, FIELDS, path) | {
        "activation": activation_of(values, "hidden_act", "gelu", path),
        "norm_epsilon": number(values, "layer_norm_eps", 1e-12, path),
        "n_segments": values.get("type_vocab_size", 2),
    }


def refuse(values: Json, required: Mapping[str, object], path: Path) -> None:
    """CheckpointError, by name, for what no model of these families is computed with."""
    require(values, {**REQUIRED, **required}, path)


def unread(more: str = "") -> re.Pattern[str]:
    """What matches names of tensors that no model reads, those of a family too."""
    patterns = filter(None, (UNREAD, OTHER_TASKS, more))
    return re.compile(f"({'|'.join(patterns)}).*")


def first_rows(stored: int, count: int) -> Layout:
    """The first rows of a stored table, of which no others are used."""
    return Layout(lambda ours: (stored, *ours[1:]), lambda theirs: theirs[:count])


def bert_sources(config: EncoderConfig, positions: Layout) -> dict[str, Source]:
    """Our name of every weight of BERT and what is built like it, and where a file holds it;
    ``positions`` is how the table of positions lies there."""
    names = {
        f"{EMBEDDING}.weight": Source("embeddings.word_embeddings.weight"),
        POSITIONS: Source("embeddings.position_embeddings.weight", positions),
        SEGMENTS: Source("embeddings.token_type_embeddings.weight"),
        **both("encoder.embedding_norm", "embeddings.LayerNorm", biases=True),
    }
    for ours, theirs in of_layers(config, "encoder.layer.{}", "encoder"):
        for our, their in BERT_PARTS.items():
            names |= both(f"{ours}.{our}", f"{theirs}.{their}", biases=True)
    return names


BERT_PARTS = {
    "self_attention.q_proj": "attention.self.query",
    "self_attention.k_proj": "attention.self.key",
    "self_attention.v_proj": "attention.self.value",
    "self_attention.out_proj": "attention.output.dense",
    "self_attention_residual.norm": "attention.output.LayerNorm",
    "feed_forward.inner": "intermediate.dense",
    "feed_forward.outer": "output.dense",
    "feed_forward_residual.norm": "output.LayerNorm",
}
"""Parts of a layer, which lie in a file as ours."""
