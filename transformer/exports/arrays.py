"""Weights of one's own as typed arrays: from any framework, checked, and left as they are.

What is taken: (layers, heads, queries, keys), with or without layers and heads; a list of layers,
as transformers' ``output_attentions`` returns (each with its batch of one); a mapping of such by
kind, as the outputs of transformers and a cache of TransformerLens are; numpy, torch, jax, or
whatever has ``__array__`` or ``__dlpack__``. Nothing is copied that need not be: numbers become
float32 when a head is asked for. No PyTorch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from transformer.config import AttentionKind, Side
from transformer.families.pieces import byte_name
from transformer.text.typed import without_surrogates
from transformer.text.words import BYTE_PIECE, SPACE, Special, is_punctuation
from transformer.view import Array, BoolArray

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

MOST_TOKENS = 1_024
"""Most tokens of a side."""
MOST_LAYERS = MOST_HEADS = 256
MOST_TOGETHER = 16_384
"""Most heads of all layers; the largest published models have as many."""
MARKS = frozenset(
    {
        *("<s>", "</s>", "<pad>", "<unk>", "<mask>", "<bos>", "<eos>", "<sep>", "<cls>"),
        *("[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]", "[BOS]", "[EOS]"),
        *("<|endoftext|>", "<|begin_of_text|>", "<|end_of_text|>", "<|im_start|>", "<|im_end|>"),
        *("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<start_of_turn>"),
    }
)
"""Names that tokenizers give to tokens that no text contains.

Of tokens without a vocabulary nothing is known but their spelling.
"""


class WeightsError(ValueError):
    """Weights, or their tokens, cannot be shown; the message says why in one sentence."""


class SupportsArray(Protocol):
    """An array of a framework that NumPy can read."""

    def __array__(self) -> NDArray[np.generic]: ...


@runtime_checkable
class SupportsDlpack(Protocol):
    """An array of a framework that shares its memory (DLPack)."""

    def __dlpack__(self, *, stream: None = ...) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


Numbers: TypeAlias = "SupportsArray | SupportsDlpack | Sequence[Numbers] | float | None"
"""An array, or nested lists; transformers has None where a model kept no weights."""


@runtime_checkable
class SupportsItems(Protocol):
    """A mapping by name, or what reads like one, as a cache of TransformerLens does."""

    def keys(self) -> Iterable[str]: ...
    def __getitem__(self, name: str, /) -> Numbers: ...


Weights: TypeAlias = "Numbers | SupportsItems"
Token: TypeAlias = "str | bytes | int"
"""A text, or an id, of which nothing is known but its number."""
Tokens: TypeAlias = "Iterable[Token] | Iterable[Iterable[Token]] | Mapping[str, Iterable[Token]]"
"""Tokens once; those of queries and of keys; or by side, "encoder" and "decoder"."""

OUTPUTS: Mapping[str, AttentionKind | None] = {
    "encoder_attentions": AttentionKind.ENCODER,
    "decoder_attentions": AttentionKind.DECODER,
    "cross_attentions": AttentionKind.CROSS,
    "attentions": None,
    "weights": None,
}
"""Names under which outputs of transformers, and files, hold weights, each with its kind if the
name says it."""
_CACHED = re.compile(
    r"(?:(?P<stack>encoder|decoder)|blocks)\.(?P<layer>\d+)\.(?P<cross>cross_)?attn\.hook_pattern"
)
"""The name of a layer's weights in a cache of TransformerLens."""
SIDES: Mapping[str, Side] = {
    "encoder": "encoder",
    "source": "encoder",
    "keys": "encoder",
    "decoder": "decoder",
    "target": "decoder",
    "queries": "decoder",
}
"""The side of tokens by its name; queries and keys of one kind that differ are a decoder's and an
encoder's, as in cross-attention."""
AXES = ("queries", "keys")
SHAPES = {
    2: "one matrix (queries, keys)",
    3: "(heads, queries, keys)",
    4: "(layers, heads, queries, keys)",
}


@runtime_checkable
class Layer(Protocol):
    """(heads, queries, keys) weights of a layer, of any framework."""

    @property
    def shape(self) -> Sequence[int]: ...
    def __getitem__(self, head: int, /) -> Numbers: ...


@dataclass(frozen=True, kw_only=True)
class KindWeights:
    """The weights of one kind of attention, as they were given."""

    name: str  # under which they were given
    kind: AttentionKind  # what they connect
    layers: tuple[Layer, ...]  # (heads, queries, keys) each, of one shape
    causal: bool  # whether all cells above the diagonal are exactly 0, in a kind that is masked
    inferred: str = ""  # what was inferred of its mask, in a sentence

    @property
    def title(self) -> str:
        """What the maps are called; empty if the name says no more than the kind."""
        if self.name in OUTPUTS or self.name in SIDES or self.name in [*AttentionKind]:
            return ""
        return self.name

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Layers, heads, queries, keys."""
        heads, queries, keys = self.layers[0].shape
        return len(self.layers), int(heads), int(queries), int(keys)

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers as they are held, where that is known."""
        return sum(getattr(layer, "nbytes", 0) for layer in self.layers)

    def weights(self, layer: int, head: int) -> Array:
        """(queries, keys) of a head; IndexError if there is none."""
        n_layers, n_heads, *_ = self.shape
        if not (0 <= layer < n_layers and 0 <= head < n_heads):
            raise IndexError(f"There is no head {head} in a layer {layer}; both count from 0.")
        return _single(as_array(self.layers[layer][head], self.name))

    def layer(self, layer: int) -> Array:
        """(heads, queries, keys) of a layer."""
        return _single(as_array(self.layers[layer], self.name))

    @cached_property
    def mask(self) -> BoolArray:
        """(queries, keys) of every head, True = may attend."""
        _, _, *size = self.shape
        mask = np.ones(size, bool)
        if self.causal:
            mask = np.tril(mask)
        return mask


@dataclass(frozen=True, kw_only=True)
class OwnArrays:
    """Weights of one run by kind, and the tokens of its sides."""

    kinds: Mapping[AttentionKind, KindWeights]  # in the order of a model's table
    tokens: Mapping[Side, tuple[str, ...]]  # of each side that a kind connects


def _single(numbers: NDArray[np.generic]) -> Array:
    """Numbers as float32, in which those that are too large are infinite."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32, copy=False)


def sides_of(kind: AttentionKind) -> tuple[Side, Side]:
    """The sides of a kind's queries and keys."""
    sides: Mapping[AttentionKind, tuple[Side, Side]] = {
        AttentionKind.ENCODER: ("encoder", "encoder"),
        AttentionKind.DECODER: ("decoder", "decoder"),
        AttentionKind.CROSS: ("decoder", "encoder"),
    }
    return sides[kind]


def own_arrays(
    weights: Weights, tokens: Tokens | None = None, kinds: str | Mapping[str, str] | None = ""
) -> OwnArrays:
    """Weights as typed arrays, with their tokens, which are numbers if none are given.

    ``kinds``: what each is, by its name; or what the only one is: "encoder", "decoder", "cross",
    or a word of one's own. What is not said follows from shapes, tokens and zeros. WeightsError
    if sizes disagree, or a text has over ``MOST_TOKENS`` tokens.
    """
    layers_of = {name: _layers(numbers, name) for name, numbers in _named(weights)}
    titles = _titles(kinds, [*layers_of])
    pieces = _pieces(tokens)
    arrays = dict[AttentionKind, KindWeights]()
    for name, layers in layers_of.items():
        title, kind = titles[name]
        entry = _placed(title, layers, kind or OUTPUTS.get(name), pieces)
        if entry.kind in arrays:
            raise WeightsError(
                f"“{arrays[entry.kind].name}” and “{title}” are both taken for {entry.kind} "
                "attention: say of each what it is, encoder, decoder or cross."
            )
        arrays[entry.kind] = entry
    ordered = {kind: arrays[kind] for kind in AttentionKind if kind in arrays}
    return OwnArrays(kinds=ordered, tokens=_tokens_of(ordered, pieces))


def as_array(numbers: object, name: str) -> NDArray[np.generic]:
    """Numbers of any framework as NumPy's, shared where that can be; WeightsError if they are
    none."""
    if numbers is None:
        raise WeightsError(f"There are no numbers in “{name}”.")
    if getattr(numbers, "is_meta", False):
        raise WeightsError(f"“{name}” is a tensor on the device “meta”, which holds no numbers.")
    moves = ["detach", "cpu"]  # a tensor of PyTorch that needs gradients, or lies elsewhere
    if str(getattr(numbers, "dtype", "")) == "torch.bfloat16":
        moves.append("float")
    try:
        for move in moves:
            numbers = getattr(numbers, move, lambda same=numbers: same)()
        if isinstance(numbers, np.ma.MaskedArray):
            array: NDArray[np.generic] = np.where(np.ma.getmaskarray(numbers), np.nan, numbers.data)
        elif isinstance(numbers, SupportsDlpack) and not hasattr(numbers, "__array__"):
            array = np.from_dlpack(numbers)
        else:
            array = np.asarray(numbers)
    except (TypeError, ValueError, RuntimeError, BufferError):
        raise WeightsError(
            f"“{name}” is no array: its rows have different lengths, or hold more than numbers."
        ) from None
    if array.dtype == object and any(cell is None for cell in array.flat):
        raise WeightsError(f"“{name}” has cells that are None, or null, and no numbers.")
    if array.dtype.kind not in "fiub" and "float" not in str(array.dtype):
        raise WeightsError(f"“{name}” holds {array.dtype}; weights must be numbers.")
    return array


# --- what is given as what -----------------------------------------------------------------------


def _named(weights: Weights) -> Iterator[tuple[str, Numbers]]:
    """Each of several kinds with its name; one alone is called "weights"."""
    if not isinstance(weights, SupportsItems):
        yield "weights", weights
        return
    if hasattr(weights, "__array__"):  # a table, whose keys are its columns
        yield "weights", as_array(weights, "weights")
        return
    names = list(weights.keys())
    _check_names(names)
    cached = dict[str, dict[int, Numbers]]()
    for name in names:
        if match := _CACHED.fullmatch(name):
            kind = match["cross"] or match["stack"] or "weights"
            cached.setdefault(kind.rstrip("_"), {})[int(match["layer"])] = weights[name]
    if cached:
        for kind, layers in cached.items():
            yield kind, [layers[layer] for layer in sorted(layers)]
        return
    known = [name for name in names if name in OUTPUTS and _is_there(weights[name])]
    for name in known or names:
        yield name, weights[name]
    if not names:
        raise WeightsError("There are no weights: the mapping is empty.")


def _check_names(names: Iterable[object]) -> None:
    """WeightsError if parts of a mapping have other names than texts."""
    for name in names:
        if not isinstance(name, str):
            raise WeightsError(
                f"The name {name!r:.40} in the mapping of weights is no text; layers are a list."
            )


def _is_there(numbers: Numbers) -> bool:
    """Whether a part of an output holds anything."""
    return numbers is not None and not (isinstance(numbers, tuple | list) and not numbers)


def _titles(
    kinds: str | Mapping[str, str] | None, names: Sequence[str]
) -> dict[str, tuple[str, AttentionKind | None]]:
    """By name, the title of each kind and what it is, if somebody says it."""
    words = kinds or ""
    _check_words(words)
    if isinstance(words, str):
        if words and len(names) > 1:
            raise WeightsError(
                f"One word, “{words}”, is given for {len(names)} kinds: say of each what it is."
            )
        words = dict.fromkeys(names, words)
    if unknown := [name for name in words if name not in names]:
        raise WeightsError(f"There are no weights “{unknown[0]}”; there are {', '.join(names)}.")
    titles = dict[str, tuple[str, AttentionKind | None]]()
    for name in names:
        word = words.get(name, "")
        stated = next((kind for kind in AttentionKind if kind in (word, name)), None)
        title = word
        if not word or word in [*AttentionKind]:
            title = name
        titles[name] = without_surrogates(title), stated
    return titles


def _check_words(words: object) -> None:
    """WeightsError if ``kinds`` is neither a word nor a mapping of words."""
    each_word = [words]
    if isinstance(words, Mapping):
        each_word = [*words.values()]
    for word in each_word:
        if not isinstance(word, str):
            raise WeightsError(
                f"`kinds` holds {word!r:.40}; it is a word, or a mapping with a word for each name."
            )


def _layers(numbers: Numbers, name: str) -> tuple[Layer, ...]:
    """The layers of what was given, (heads, queries, keys) each, of one shape."""
    if isinstance(numbers, list | tuple) and any(map(_is_array, numbers)):
        layers = [_layer(layer, f"layer {at} of “{name}”") for at, layer in enumerate(numbers, 1)]
    elif isinstance(numbers, list | tuple) and any(map(_holds, _first(numbers))):
        raise WeightsError(
            f"“{name}” has a list for each step, as generate() returns: run the model once over "
            "the whole output."
        )
    else:
        layers = _cut(numbers, name)
    if not layers:
        raise WeightsError(f"“{name}” has no layers.")
    _check_layers(layers, name)
    return tuple(layers)


def _first(numbers: Sequence[Numbers]) -> Sequence[Numbers]:
    """The first part of nested lists."""
    if numbers and isinstance(numbers[0], list | tuple):
        return numbers[0]
    return ()


def _is_array(part: Numbers) -> bool:
    """Whether something is an array, or stands where a model kept none."""
    return part is None or _holds(part)


def _holds(numbers: Numbers) -> bool:
    """Whether something is an array."""
    return hasattr(numbers, "__array__") or isinstance(numbers, SupportsDlpack)


def _layer(part: Numbers, name: str) -> Layer:
    """One layer of a list, without its batch of one."""
    if part is None:
        raise WeightsError(
            f"There are no numbers in {name}: load the model with "
            'attn_implementation="eager", which keeps its weights.'
        )
    array = _sliced(part, name)
    sizes = array.shape
    if len(sizes) == 4:
        _check_batch(sizes[0], name)
        array = _sliced(array[0], name)
    if len(array.shape) == 2:  # one head
        array = as_array(array, name)[None]
    if len(array.shape) != 3:
        raise WeightsError(
            f"{name[0].upper()}{name[1:]} has {len(sizes)} axes; a layer has 3, (heads, queries, "
            "keys), or 4 with its batch."
        )
    return array


def _check_batch(size: int, name: str) -> None:
    if size != 1:
        raise WeightsError(f"The batch axis of {name} has {size} texts; give 1, such as layer[:1].")


def _sliced(numbers: Numbers, name: str) -> Layer:
    """What has a shape and parts, as arrays of every framework do; others become NumPy's."""
    sliced: object = numbers
    if isinstance(sliced, Layer):
        return sliced
    return as_array(numbers, name)


def _cut(numbers: Numbers, name: str) -> list[Layer]:
    """One array as its layers."""
    array = _sliced(numbers, name)
    n_axes = len(array.shape)
    if n_axes == 5:  # (layers, batch, heads, queries, keys), as stacked layers are
        return [_layer(array[at], f"layer {at + 1} of “{name}”") for at in range(array.shape[0])]
    if n_axes == 4:
        return [_sliced(array[at], name) for at in range(array.shape[0])]
    if n_axes == 3:
        return [array]
    if n_axes == 2:
        return [as_array(array, name)[None]]
    forms = ", ".join(SHAPES.values())
    raise WeightsError(f"“{name}” has {n_axes} axes; weights are {forms}, or a list of layers.")


def _check_layers(layers: Sequence[Layer], name: str) -> None:
    """WeightsError if layers differ in a size, or a size is 0 or too large."""
    first = layers[0].shape
    if len(layers) > MOST_LAYERS:
        raise WeightsError(
            f"The layers axis of “{name}” has {len(layers)}; at most {MOST_LAYERS} are shown."
        )
    for axis, most, size in zip(
        ("heads", *AXES), (MOST_HEADS, MOST_TOKENS, MOST_TOKENS), first, strict=True
    ):
        if not 0 < size <= most:
            raise WeightsError(
                f"The {axis} axis of “{name}” has {size:,}; from 1 to {most:,} are shown."
            )
    if len(layers) * first[0] > MOST_TOGETHER:
        raise WeightsError(
            f"“{name}” has {len(layers)} layers of {first[0]} heads; at most {MOST_TOGETHER:,} "
            "heads are shown."
        )
    for number, layer in enumerate(layers[1:], 2):
        for axis, size, usual in zip(("heads", *AXES), layer.shape, first, strict=True):
            if size != usual:
                raise WeightsError(
                    f"The {axis} axis of “{name}” has {usual:,} in layer 1 and {size:,} in layer "
                    f"{number}."
                )


# --- what connects what --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pieces:
    """The tokens that were given: the same for both sides, or each its own."""

    of: Mapping[Side, tuple[str, ...]] = field(default_factory=dict)
    apart: bool = False  # whether queries and keys were given apart


def _pieces(tokens: Tokens | None) -> _Pieces:
    """Tokens by side, as pieces."""
    if tokens is None:
        return _Pieces()
    if isinstance(tokens, Mapping):
        named = dict[Side, tuple[str, ...]]()
        for name, of_side in tokens.items():
            if name not in SIDES:
                raise WeightsError(
                    f"There is no side “{name}”; tokens are of the encoder or the decoder."
                )
            named[SIDES[name]] = pieces_of(texts_of(of_side))
        return _Pieces(named, len(named) > 1)
    parts = _listed(tokens)
    if len(parts) == 1 and isinstance(parts[0], list):  # in a batch of one
        parts = _listed(parts[0])
    lists = [texts for texts in parts if not isinstance(texts, str | bytes) and _is_listed(texts)]
    if not lists:
        pieces = pieces_of(texts_of(parts))
        return _Pieces({"encoder": pieces, "decoder": pieces})
    if len(lists) != 2 or len(parts) != 2:
        raise WeightsError(
            f"There are {len(parts)} lists of tokens; give one, or those of queries and of keys."
        )
    queries, keys = [pieces_of(texts_of(texts)) for texts in lists]
    return _Pieces({"encoder": keys, "decoder": queries}, True)


def texts_of(tokens: object) -> list[str]:
    """Tokens of one side as texts, from a list, or an array of any framework.

    An id is its number; bytes are UTF-8; a lone surrogate, which no file can hold, becomes
    U+FFFD. WeightsError if they are anything else.
    """
    return [_text(token) for token in _listed(tokens)]


def _listed(tokens: object) -> list[object]:
    """What tokens are given in, as a list."""
    if isinstance(tokens, str | bytes):
        raise WeightsError("The tokens are one text; give a list with a text for each token.")
    listed = _plain(tokens)
    if not _is_listed(listed):
        raise WeightsError(f"The tokens {listed!r:.40} are no list with a text for each token.")
    return [*map(_plain, listed)]


def _plain(tokens: object) -> object:
    """An array, an index of pandas, or a number of a framework as lists and numbers of Python."""
    if hasattr(tokens, "tolist"):
        return tokens.tolist()
    return tokens


def _is_listed(tokens: object) -> TypeGuard[Iterable[object]]:
    """Whether something has parts in an order; a mapping is no list of its names."""
    return isinstance(tokens, Iterable) and not isinstance(tokens, Mapping | set | frozenset)


def _text(token: object) -> str:
    """A token as a text."""
    if isinstance(token, str):
        return without_surrogates(token)
    if isinstance(token, bytes):
        return token.decode("utf-8", "replace")
    if isinstance(token, int | np.integer) and not isinstance(token, bool):
        return str(token)
    raise WeightsError(f"The token {token!r:.40} is no text.")


def pieces_of(tokens: Sequence[str]) -> tuple[str, ...]:
    """Tokens as pieces that say where a word begins: a `▁` before it.

    Read are the marks of sentencepiece (`▁house`, and `<0xE2>` for a byte), of byte-level
    vocabularies (`Ġhouse`) and of WordPiece (`##s` goes on with a word); where there is none,
    every token is a word.
    """
    plain = [str(token) for token in tokens if not _is_mark(token)]
    read: Callable[[str], str] = _begun
    if any(SPACE in text or BYTE_PIECE.fullmatch(text) for text in plain):
        read = str
    elif any(text.startswith(("Ġ", "Ċ")) for text in plain):
        read = byte_name
    return tuple(_piece(token, read) for token in tokens)


def _piece(token: str, read: Callable[[str], str]) -> str:
    """A token as a piece; one that stands for no text keeps its name."""
    if _is_mark(token):
        return Special(token)
    return read(str(token))


def _is_mark(token: str) -> bool:
    """Whether a token stands for no text."""
    return isinstance(token, Special) or token in MARKS


def _begun(token: str) -> str:
    """A token without a mark as a piece: a word of its own, unless it goes on with one."""
    if token.startswith("##") and len(token) > 2:
        return token[2:]
    if is_punctuation(token):
        return token
    return f"{SPACE}{token.replace(' ', SPACE)}"


_MASKED = (
    "Cells above the diagonal are all exactly 0, so they are drawn as masked: each row is taken to "
    "see the tokens up to its own."
)
_UNMASKED = "Some cells above the diagonal are not 0, so none is drawn as masked."


def _placed(
    name: str, layers: tuple[Layer, ...], kind: AttentionKind | None, pieces: _Pieces
) -> KindWeights:
    """Weights with what they connect; WeightsError if a kind's shape contradicts it."""
    _, queries, keys = layers[0].shape
    causal = queries == keys and kind not in ("encoder", "cross") and _is_causal(layers, name)
    if kind is None:
        kind = _kind_of(queries, keys, pieces, causal=causal)
    if kind is not AttentionKind.CROSS and queries != keys:
        raise WeightsError(
            f"The queries axis of “{name}” has {queries:,} and its keys axis {keys:,}; "
            "self-attention has as many of both."
        )
    inferred = ""
    if kind is AttentionKind.DECODER and queries > 1:
        inferred = _UNMASKED
        if causal:
            inferred = _MASKED
    return KindWeights(name=name, kind=kind, layers=layers, causal=causal, inferred=inferred)


def _kind_of(queries: int, keys: int, pieces: _Pieces, *, causal: bool) -> AttentionKind:
    """What weights connect, by their shape, the tokens and their zeros."""
    if queries != keys:
        return AttentionKind.CROSS
    if causal:
        return AttentionKind.DECODER
    if not pieces.apart:
        return AttentionKind.ENCODER
    encoder = pieces.of["encoder"]
    decoder = pieces.of["decoder"]
    if len(encoder) == len(decoder) == keys and encoder != decoder:
        return AttentionKind.CROSS
    if len(decoder) == keys != len(encoder):
        return AttentionKind.DECODER
    return AttentionKind.ENCODER


def _is_causal(layers: Sequence[Layer], name: str) -> bool:
    """Whether every cell above the diagonal is exactly 0, in all heads; one cell says nothing."""
    _, queries, keys = layers[0].shape
    if queries < 2:
        return False
    above = np.triu(np.ones((queries, keys), bool), 1)
    for layer in layers:
        weights = as_array(layer, name)
        if weights[:, 0, 1:].any() or (weights != 0).any(where=above):
            return False
    return True


def _tokens_of(
    kinds: Mapping[AttentionKind, KindWeights], pieces: _Pieces
) -> dict[Side, tuple[str, ...]]:
    """The tokens of each side; numbers from 1 where none were given.

    WeightsError if an axis has another size than its tokens, or than that of another kind.
    """
    tokens = dict(pieces.of)
    numbered = dict[Side, str]()  # the weights by which tokens were counted that were not given
    needed = dict[Side, tuple[str, ...]]()
    for kind, entry in kinds.items():
        *_, queries, keys = entry.shape
        for side, axis, size in zip(sides_of(kind), AXES, (queries, keys), strict=True):
            if side not in tokens:
                tokens[side] = tuple(f"{SPACE}{at}" for at in range(1, size + 1))
                numbered[side] = entry.name
            needed[side] = tokens[side]
            n_tokens = len(tokens[side])
            if size == n_tokens:
                continue
            beside = f"{n_tokens:,} tokens were given"
            if side in numbered:
                beside = f"“{numbered[side]}” has {n_tokens:,}"
            raise WeightsError(f"The {axis} axis of “{entry.name}” has {size:,}, but {beside}.")
    return needed
