"""A family of checkpoints, as transformers and the Hub have them: its values, and how its config is
ours.

No PyTorch: a model is described without it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from transformer.config import TransformerConfig
from transformer.storage.description import check_parameters
from transformer.storage.files import CheckpointError
from transformer.text.tokenizer import Vocabulary

Row = TypeVar("Row")
Json = dict[str, Any]
GENERATION_FILE = "generation_config.json"
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_fast": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
"""Our names of activations by theirs."""


@dataclass(frozen=True)
class Family:
    """What opening a model asks of its family."""

    name: str  # how people call its models
    types: tuple[str, ...]  # what ``model_type`` of config.json may say
    # of a vocabulary without tokenizer.json; the first tells the families apart
    files: tuple[str, ...]
    tokenizers: tuple[str, ...]  # classes of transformers that put tokens in this family's order
    # entries of config.json, and its path for messages, as our config
    config: Callable[[Json, Path], TransformerConfig]
    # our name of every weight besides the tables → theirs
    names: Callable[[TransformerConfig], dict[str, str]]
    # for the tables of source, target and output: the names under which a file may hold each, its
    # own first
    tables: Callable[[TransformerConfig], Sequence[Sequence[str]]]
    # the vocabulary of a directory, and the config with what only the vocabulary knows
    vocabulary: Callable[[Path, TransformerConfig], tuple[Vocabulary, TransformerConfig]]
    # of names of weights, which models saved without their output projection lack
    prefix: str = "model."


FIELDS: dict[str, tuple[str, object]] = {
    "d_model": ("d_model", 1024),
    "d_ff": ("encoder_ffn_dim", 4096),
    "decoder_d_ff": ("decoder_ffn_dim", 4096),
    "n_heads": ("encoder_attention_heads", 16),
    "n_encoder_layers": ("encoder_layers", 12),
    "n_decoder_layers": ("decoder_layers", 12),
    "dropout": ("dropout", 0.1),
    "max_positions": ("max_position_embeddings", 1024),
    "pad_id": ("pad_token_id", 1),
    "bos_id": ("decoder_start_token_id", 2),
    "eos_id": ("eos_token_id", 2),
}
"""Maps our field to that of Marian's and fairseq's relatives and the reference's default."""


def config_of(
    values: Json,
    path: Path,
    *,
    # our field → theirs and its default, besides ``FIELDS``
    fields: Mapping[str, tuple[str, object]],
    required: Mapping[str, object],  # entries whose other values would mean another architecture
    activation: str,  # the default
    choices: Json,  # what all of the family have in common
) -> TransformerConfig:
    """The config of Marian's and fairseq's relatives; CheckpointError if an entry is wrong or
    unsupported."""
    require(values, required, path)
    heads = values.get("decoder_attention_heads", 16)
    twin = values.get("encoder_attention_heads", 16)
    if heads != twin:
        raise CheckpointError(
            f"{path} has decoder_attention_heads = {heads!r:.80}, but encoder_attention_heads = "
            f"{twin!r:.80}; only models with equal values are supported."
        )
    ours = taken(values, FIELDS | dict(fields)) | choices
    ours["activation"] = activation_of(values, "activation_function", activation, path)
    return built(ours, path)


def activation_of(values: Json, entry: str, default: str, path: Path) -> str:
    """Our name of an activation; CheckpointError if this package has it not."""
    return row_of(ACTIVATIONS, values.get(entry, default), "activation", path)


def require(values: Json, required: Mapping[str, object], path: Path) -> None:
    """CheckpointError if an entry is there and says something else than what this package can
    compute."""
    for name, needed in required.items():
        if values.get(name, needed) != needed:
            raise CheckpointError(
                f"{path} says {name} = {values[name]!r:.80}; only {needed!r} is supported."
            )


def row_of(table: Mapping[str, Row], value: object, what: str, path: Path) -> Row:
    """What a table says of an entry's value; CheckpointError if the table does not know it."""
    if not isinstance(value, str) or value not in table:
        raise CheckpointError(
            f"{path} has the {what} {value!r:.80}; supported are {', '.join(table)}."
        )
    return table[value]


def taken(values: Json, fields: Mapping[str, tuple[str, object]]) -> Json:
    """Our fields, each from its entry, or the reference's default; a list of one id is that id."""
    ours = {field: values.get(name, default) for field, (name, default) in fields.items()}
    return {
        field: one_id(value) if field.endswith("_id") else value for field, value in ours.items()
    }


def listed_ids(value: Any) -> list[Any]:
    """What an entry of ids names: none, one, or several."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def one_id(value: Any) -> Any:
    """The id that an entry names; the entry itself, which is no id, if it names several or none."""
    ids = listed_ids(value)
    return ids[0] if len(ids) == 1 else value


def built(ours: Json, path: Path) -> TransformerConfig:
    """The config of fields; CheckpointError if one is out of range, or the model would be too
    large."""
    if ours.get("decoder_d_ff") == ours["d_ff"]:
        ours = ours | {"decoder_d_ff": None}
    try:
        config = TransformerConfig(**ours)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path} describes no usable model: {error}") from error
    check_parameters(path, config)
    return config


def every_part(
    config: TransformerConfig, layers: str, encoder: Mapping[str, str], decoder: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Our name and theirs of every part of all layers, named alike in each; ``layers`` is what
    theirs begin with, a pattern of the stack's name and the layer's number, from 0."""
    depths = {"encoder": config.n_encoder_layers, "decoder": config.n_decoder_layers}
    for stack, parts in (("encoder", encoder), ("decoder", decoder)):
        for layer in range(depths[stack]):
            theirs = layers.format(stack, layer)
            for our, their in parts.items():
                yield f"{stack}.layers.{layer}.{our}", f"{theirs}.{their}"
