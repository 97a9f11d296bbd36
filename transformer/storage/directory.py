"""A model as a directory of plain files: safetensors, JSON, a sentencepiece model, a card."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from transformer.config import (
    EncoderConfig,
    LanguageModelConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
)
from transformer.decoding import FREE, SearchRules
from transformer.interventions import HeadMeans
from transformer.model import EncoderDecoder, EncoderModel, LanguageModel, Network, Transformer
from transformer.recurrent import Recurrent
from transformer.storage.description import (
    CARD_FILE,
    CONFIG_FILE,
    DAMAGED,
    HEADS_FILE,
    MEANS_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    numbers_held,
    read_card,
    read_config,
    read_heads,
    weights_hash,
)
from transformer.storage.eight_bits import unpacked, weight_names
from transformer.storage.files import (
    CheckpointError,
    check_vocabulary,
    write_atomically,
    write_json,
)
from transformer.storage.tensors import (
    EIGHT_BITS,
    TYPES,
    check_names,
    check_shape,
    opened,
    read_tensors,
    serialize_tensors,
    stored_tensors,
    tensors_of,
)
from transformer.text.tokenizer import Tokenizer, TokenizerError, Vocabulary

NETWORKS: dict[type[ModelConfig], Callable[..., Network]] = {
    TransformerConfig: Transformer,
    LanguageModelConfig: LanguageModel,
    EncoderConfig: EncoderModel,
    RecurrentConfig: Recurrent,
}
"""The model of a config."""
WEIGHTS = "weights"
"""The note that holds the hash of the weights."""


@dataclass(frozen=True)
class Checkpoint:
    """The model of a directory."""

    config: ModelConfig  # sizes and architecture choices
    model: Network  # the model, float32, in evaluation mode
    tokenizer: Vocabulary  # the vocabulary of the model
    heads: dict[str, Any] | None  # head statistics (`heads.json`), or None
    card: str  # text of the model card; empty if there is none
    rules: SearchRules = FREE  # search settings that the model asks for
    notes: tuple[str, ...] = ()  # sentences to show beside every translation
    means: HeadMeans | None = None  # mean outputs of the heads (`means.safetensors`), or None
    chat_template: str = ""  # what turns a conversation into a text (`transformer.text.chat`)

    @property
    def translating(self) -> EncoderDecoder:
        """The model, if it translates; CheckpointError if it is a model of another sort."""
        if isinstance(self.model, EncoderDecoder):
            return self.model
        if isinstance(self.model, LanguageModel):
            raise CheckpointError(
                "This is a language model, which cannot translate; continue a text with it."
            )
        raise CheckpointError(
            "This is an encoder alone, which cannot translate; open it with load_encoder."
        )


def half_precision(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights for storage: contiguous float16 on the CPU; CheckpointError if one is not finite in
    float16."""
    stored = {
        name: tensor.detach().to("cpu", torch.float16).contiguous()
        for name, tensor in state.items()
    }
    for name, tensor in stored.items():
        if not bool(tensor.isfinite().all()):
            raise CheckpointError(
                f"The weight {name} has values that float16 cannot hold; the training diverged."
            )
    return stored


def save_checkpoint(
    path: str | Path,  # the directory; created if it does not exist
    config: ModelConfig,  # sizes and architecture choices
    state: dict[str, Tensor],  # the model's `state_dict()`
    tokenizer: Tokenizer,  # the vocabulary of the model
    *,
    card: str = "",  # text of `README.md`; not written if empty
    heads: dict[str, Any] | None = None,  # content of `heads.json`; not written if None
    step: int | None = None,  # training step of the weights, stored in their file
    # what the file holds of the weights: `half_precision`, or `eight_bits.packed`
    stored: Callable[[dict[str, Tensor]], dict[str, Tensor]] = half_precision,
) -> None:
    """Writes a model directory, each file atomically and the weights last.

    CheckpointError if a weight is not finite; OSError if the directory cannot be written.
    """
    directory = Path(path)
    tensors = stored(state)
    directory.mkdir(parents=True, exist_ok=True)
    write_json(directory / CONFIG_FILE, asdict(config))
    write_atomically(directory / TOKENIZER_FILE, tokenizer.serialized)
    if card:
        write_atomically(directory / CARD_FILE, card.encode())
    if heads is not None:
        write_json(directory / HEADS_FILE, heads)
    notes = {"format": "pt"} | ({} if step is None else {"step": str(step)})
    write_atomically(directory / WEIGHTS_FILE, serialize_tensors(tensors, notes))


def step_of(directory: Path) -> int | None:
    """The training step that a file of weights notes, or None; CheckpointError if it is damaged."""
    with opened(directory / WEIGHTS_FILE) as file:
        noted = (file.metadata() or {}).get("step", "")
    return int(noted) if noted.isdecimal() else None


def load_checkpoint(path: str | Path, weights: str = WEIGHTS_FILE) -> Checkpoint:
    """Reads a model directory; CheckpointError if a file is missing, damaged or another model's.

    The config is checked before memory is allocated, the shapes of all weights before the weights
    are read.
    """
    directory = Path(path)
    config = read_config(directory)
    tokenizer = _read_tokenizer(directory, config)
    model = _read_weights(directory, config, weights)
    heads, notes = read_heads(directory, config)
    try:
        means = read_means(directory, config)
    except CheckpointError:
        means = None
        notes = (*notes, DAMAGED.format(MEANS_FILE))
    # where bytes spell what no other piece does, `<unk>` never stands for a text
    rules = FREE if tokenizer.source.bytes else SearchRules(forbidden=((config.unk_id,),))
    return Checkpoint(
        config=config,
        model=model,
        tokenizer=tokenizer,
        heads=heads,
        card=read_card(directory),
        rules=rules,
        notes=notes,
        means=means,
    )


def _read_tokenizer(directory: Path, config: ModelConfig) -> Tokenizer:
    path = directory / TOKENIZER_FILE
    if not path.is_file():
        raise CheckpointError(
            f"{directory} has no {TOKENIZER_FILE}, so it is not a complete model directory."
        )
    check_vocabulary(path)
    try:
        tokenizer = Tokenizer.load(path)
    except TokenizerError as error:
        raise CheckpointError(f"{path}: {error}") from error
    if tokenizer.vocab_size != config.vocab_size:
        raise CheckpointError(
            f"{path} has {tokenizer.vocab_size:,} pieces, but config.json says vocab_size "
            f"{config.vocab_size:,}; the files belong to different models."
        )
    return tokenizer


class _WithoutMemory(TorchFunctionMode):
    """Puts new parameters (created without a dtype) on the meta device and draws no random numbers
    for them.

    (With `torch.device("meta")`, the first draw or `arange` imports 800 modules: 1.5 s,
    *measured*.)
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Any = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init" or func in _RANDOM_FILLS:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        if func is torch.empty and kwargs.get("device") is None and kwargs.get("dtype") is None:
            kwargs["device"] = "meta"
        return func(*args, **kwargs)


_RANDOM_FILLS = (Tensor.uniform_, Tensor.normal_)


def _read_weights(directory: Path, config: ModelConfig, name: str) -> Network:
    path = directory / name
    if not path.is_file():
        raise CheckpointError(
            f"{directory} has no {name}, so it is not a complete model directory."
        )
    stored = stored_tensors([path], TYPES | EIGHT_BITS)
    shapes = {weight: stored[weight].shape for weight in weight_names(stored)}
    check_sizes(path, config, shapes)
    model = empty_model(directory, config)
    expected = {weight: tuple(tensor.shape) for weight, tensor in model.state_dict().items()}
    check_names(directory, set(expected), set(shapes))
    for weight, shape in expected.items():
        check_shape(path, weight, shapes[weight], shape)
    tensors = {weight: tensor.clone() for weight, tensor in read_tensors(stored)}
    state = dict(unpacked(path, tensors))
    if not all(bool(tensor.isfinite().all()) for tensor in state.values()):
        raise CheckpointError(f"{path} contains NaN or infinite values.")
    model.load_state_dict(state, assign=True)
    return model.requires_grad_(False).eval()


def empty_model(directory: Path, config: ModelConfig) -> Network:
    """A model whose parameters have shapes but no memory (meta device); its sinusoids are computed.

    CheckpointError if the config describes no model that can be built.
    """
    try:
        with _WithoutMemory():
            return NETWORKS[type(config)](config)
    except (RuntimeError, ValueError) as error:
        raise CheckpointError(
            f"{directory / CONFIG_FILE} describes no usable model: {error}"
        ) from error


def check_sizes(path: Path, config: ModelConfig, shapes: dict[str, tuple[int, ...]]) -> None:
    """CheckpointError, before memory is allocated, if a config is far larger than the weights'
    shapes."""
    held = sum(map(math.prod, shapes.values()))
    described = numbers_held(config)
    if described > 4 * held + 10_000_000:
        raise CheckpointError(
            f"{path} holds {held:,} numbers, but config.json describes a model of about "
            f"{described:,}; the files belong to different models."
        )


def write_means(directory: Path, means: HeadMeans) -> None:
    """Writes `means.safetensors` with the hash of the weights that lie in the directory."""
    tensors = {str(kind): outputs.float().contiguous() for kind, outputs in means.outputs.items()}
    notes = {**means.about, "format": "pt", WEIGHTS: weights_hash(directory)}
    write_atomically(directory / MEANS_FILE, serialize_tensors(tensors, notes))


def read_means(directory: Path, config: ModelConfig) -> HeadMeans | None:
    """The content of `means.safetensors`; None if there is no such file, or it belongs to other
    weights.

    CheckpointError if it is damaged, or describes the heads of another model.
    """
    path = directory / MEANS_FILE
    if not path.is_file():
        return None
    with opened(path) as file:
        notes = file.metadata() or {}
        outputs = tensors_of(file)
    if notes.get(WEIGHTS) != weights_hash(directory):
        return None
    shape = {
        str(kind): (site.n_layers, config.n_heads, config.d_head)
        for kind, site in config.sites.items()
    }
    fits = {name: tuple(tensor.shape) for name, tensor in outputs.items()} == shape
    if not fits or not all(bool(tensor.isfinite().all()) for tensor in outputs.values()):
        raise CheckpointError(
            f"{path} is damaged or describes the heads of another model; remove it."
        )
    about = {name: text for name, text in notes.items() if name not in ("format", WEIGHTS)}
    return HeadMeans({kind: outputs[kind].float() for kind in config.sites}, about)
