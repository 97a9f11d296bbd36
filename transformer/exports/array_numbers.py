"""Numbers of one's own as layers of weights: of any framework, checked, and left as they are.

What is taken: (layers, heads, queries, keys), with or without layers and heads; a list of layers,
as transformers' ``output_attentions`` returns (each with its batch of one); numpy, torch, jax, or
whatever has ``__array__`` or ``__dlpack__``. Nothing is copied that need not be: numbers become
float32 when a head is asked for. No PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

MOST_TOKENS = 1_024
"""Most tokens of a side."""
MOST_LAYERS = MOST_HEADS = 256
MOST_TOGETHER = 16_384
"""Most heads of all layers; the largest published models have as many."""


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


def layers_of(numbers: Numbers, name: str) -> tuple[Layer, ...]:
    """The layers of what was given, (heads, queries, keys) each, of one shape; WeightsError if
    there are none, or they are no such weights."""
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
