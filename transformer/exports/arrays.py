"""Weights of one's own as typed arrays: what is given as what, and what it connects.

Given are one kind, or a mapping by kind, as the outputs of transformers and a cache of
TransformerLens are. No PyTorch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from transformer.config import AttentionKind, Side
from transformer.exports.array_numbers import (
    AXES,
    Layer,
    Numbers,
    SupportsItems,
    Weights,
    WeightsError,
    as_array,
    layers_of,
)
from transformer.exports.array_tokens import SIDES, Marks, TokenPieces, Tokens, token_pieces
from transformer.text.typed import without_surrogates
from transformer.text.words import SPACE
from transformer.view import Array, BoolArray

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
    weights: Weights,
    tokens: Tokens | None = None,
    kinds: str | Mapping[str, str] | None = "",
    special: Marks | None = None,
) -> OwnArrays:
    """Weights as typed arrays, with their tokens, which are numbers if none are given.

    ``kinds``: what each is, by its name; or what the only one is: "encoder", "decoder", "cross",
    or a word of one's own. What is not said follows from shapes, tokens and zeros. ``special``:
    which tokens stand for no text; if it is not said, their spelling tells. WeightsError if sizes
    disagree, or a text has over ``MOST_TOKENS`` tokens.
    """
    by_name = {name: layers_of(numbers, name) for name, numbers in _named(weights)}
    titles = _titles(kinds, [*by_name])
    pieces = token_pieces(tokens, special)
    arrays = dict[AttentionKind, KindWeights]()
    for name, layers in by_name.items():
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


# --- what connects what --------------------------------------------------------------------------

_MASKED = (
    "Cells above the diagonal are all exactly 0, so they are drawn as masked: each row is taken to "
    "see the tokens up to its own."
)
_UNMASKED = "Some cells above the diagonal are not 0, so none is drawn as masked."


def _placed(
    name: str, layers: tuple[Layer, ...], kind: AttentionKind | None, pieces: TokenPieces
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


def _kind_of(queries: int, keys: int, pieces: TokenPieces, *, causal: bool) -> AttentionKind:
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
    kinds: Mapping[AttentionKind, KindWeights], pieces: TokenPieces
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
