"""Weights in 8 bits: a matrix is whole numbers from −127 to 127, divided by one multiplier a row or
for all.

What runs is what is stored: the quotients, as float32.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor

from transformer.storage.files import CheckpointError

MULTIPLIER = ".multiplier"
"""Ending that the name of a matrix's multipliers adds to that of the matrix."""
MOST = 127
_FEW = 4
"""The smallest number of a matrix that was already stored in 8 bits is taken to be below this."""


def packed(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights as a file holds them: matrices in 8 bits, vectors in float16 or, if that loses, in
    float32.

    A matrix that comes from 8 bits with one multiplier is stored without a loss.
    CheckpointError if a weight is not finite.
    """
    stored: dict[str, Tensor] = {}
    for name, tensor in state.items():
        weight = tensor.detach().to("cpu", torch.float32)
        if not bool(weight.isfinite().all()):
            raise CheckpointError(f"The weight {name} has values that are not finite.")
        if weight.dim() < 2:
            half = weight.half()
            stored[name] = (half if torch.equal(half.float(), weight) else weight).contiguous()
            continue
        multiplier = _common(weight)
        if multiplier is None:
            most = weight.flatten(1).abs().amax(1)
            multiplier = torch.where(most > 0, MOST / most, 1.0)
        beside = multiplier.reshape(-1, *[1] * (weight.dim() - 1))
        numbers = (weight * beside).round().clamp(-MOST, MOST)
        stored[name] = numbers.to(torch.int8).contiguous()
        stored[name + MULTIPLIER] = multiplier
    return stored


def _common(weight: Tensor) -> Tensor | None:
    """The one multiplier that gives every number of a matrix exactly; None if there is none."""
    least = weight.abs()[weight != 0].min() if bool(weight.any()) else torch.tensor(1.0)
    for number in range(1, _FEW):
        near = number / least
        for multiplier in (
            near,
            *(near.nextafter(near.new_tensor(end)) for end in (0.0, torch.inf)),
        ):
            numbers = (weight * multiplier).round()
            if bool((numbers.abs() <= MOST).all()) and torch.equal(numbers / multiplier, weight):
                return multiplier
    return None


def weight_names(names: Collection[str]) -> list[str]:
    """The names of the weights among those of a file's tensors: all but the multipliers of
    others."""
    return [
        name
        for name in names
        if name.removesuffix(MULTIPLIER) not in names or not name.endswith(MULTIPLIER)
    ]


def unpacked(path: Path, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yields the weights of a file in float32; CheckpointError if 8 bits lack multipliers that
    fit."""
    for name in weight_names(tensors):
        weight = tensors[name]
        multiplier = tensors.get(name + MULTIPLIER)
        if weight.dtype != torch.int8 and multiplier is None:
            yield name, weight.to(torch.float32)
            continue
        if (
            weight.dtype != torch.int8
            or multiplier is None
            or multiplier.dtype != torch.float32
            or multiplier.shape not in (torch.Size(), weight.shape[:1])
            or not bool((multiplier > 0).all() and multiplier.isfinite().all())
        ):
            raise CheckpointError(
                f"{path} holds {name} in 8 bits, but no multipliers that belong to it."
            )
        yield name, weight.float() / multiplier.reshape(-1, *[1] * (weight.dim() - 1))
