"""A GPU that is not there: PyTorch's fake tensors know where they lie, and raise where two devices meet.

They hold no numbers. Whatever reads one gets a stand-in, so that code which reads them runs to its end.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode

Model = TypeVar("Model", bound=nn.Module)
_ARRAYS = ("numpy", "__array__")
_NUMBERS = {
    "item": lambda value: value,
    "__bool__": bool,
    "__float__": float,
    "__int__": int,
    "__index__": int,
}


class _StandIns(TorchFunctionMode):
    """Answers what reads numbers: 1, ½, and that all are as they should be and none is not.

    Lists become tensors as PyTorch makes them for a GPU, by a copy, and a mask chooses everything.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        if name in ("equal", "allclose"):
            return True
        if name in (*_ARRAYS, "tolist", *_NUMBERS):
            return self._read(name, args[0])
        if name == "tensor":
            return _like(func(*args, **{**kwargs, "device": "cpu"}), kwargs.get("device", "cpu"))
        if name == "new_tensor":
            return _like(torch.tensor(*args[1:], dtype=args[0].dtype), args[0].device)
        if name == "to" and not isinstance(args[0], FakeTensor):
            args = (_like(args[0], "cpu"), *args[1:])
        if name in ("__getitem__", "__setitem__"):
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            args = (args[0], tuple(part for each in index for part in _indices(each)), *args[2:])
        made = func(*args, **kwargs)
        if name in ("any", "all"):
            made.stands_for = name == "all"
        return made

    @staticmethod
    def _read(name: str, tensor: torch.Tensor) -> Any:
        if name in _ARRAYS and tensor.device.type != "cpu":
            raise TypeError("a tensor of the GPU is no array")
        usual = 0.5 if tensor.is_floating_point() else 1
        kind = np.dtype(str(tensor.dtype).removeprefix("torch."))
        values = np.full(tuple(tensor.shape), getattr(tensor, "stands_for", usual), kind)
        if name in _ARRAYS:
            return values
        return values.tolist() if name == "tolist" else _NUMBERS[name](values.reshape(-1)[0].item())


def _like(tensor: torch.Tensor, device: Any) -> torch.Tensor:
    return torch.zeros(tensor.shape, dtype=tensor.dtype, device=device)


def _indices(index: Any) -> Iterator[Any]:
    """The parts of an index that stand for one part of it."""
    if isinstance(index, torch.Tensor) and index.dtype == torch.bool:
        yield from (
            _like(torch.tensor(rows.ravel()), index.device) for rows in np.indices(tuple(index.shape))
        )
    else:
        yield torch.tensor(index, dtype=torch.long) if isinstance(index, list | range) else index


@contextmanager
def fake_gpu() -> Iterator[FakeTensorMode]:
    """Tensors made inside have no numbers, and may lie on ``cuda``."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, _StandIns():
        yield mode


def moved(model: Model, mode: FakeTensorMode) -> Model:
    """A copy of a model on the GPU that is not there; what is neither parameter nor buffer stays."""
    memo: dict[int, Any] = {id(each): mode.from_tensor(each).to("cuda") for each in model.buffers()}
    for each in model.parameters():
        memo[id(each)] = nn.Parameter(mode.from_tensor(each.detach()).to("cuda"), requires_grad=False)
    return copy.deepcopy(model, memo)
