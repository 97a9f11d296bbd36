"""Where a model computes: one rule for the package, the commands and the app. Loads PyTorch only
when needed.

``auto`` takes a GPU (CUDA) for training and for models from 50 million parameters on. Smaller ones
answer on the CPU: a GPU does not quicken their steps, and their first picture must not wait for
one.
"""

from __future__ import annotations

import copy
import math
import os
import re
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import torch
    from torch import nn

AUTO = "auto"
VARIABLE = "TRANSFORMER_DEVICE"
"""The environment variable that says what ``auto`` is."""
LARGE = 50_000_000
"""Parameters from which on a model answers on a GPU."""
FULL = "The GPU has no memory left, so this model computes on the CPU."
Model = TypeVar("Model", bound="nn.Module")


def named(name: str | torch.device) -> str:
    """The device that is asked for; what the environment says instead of ``auto``, if it does.

    ValueError if it is not auto, cpu, cuda, or one GPU of several such as ``cuda:1``.
    """
    if not isinstance(name, str):
        return str(name)
    device = os.environ.get(VARIABLE, "").strip() or AUTO if name == AUTO else name
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,2})?", device):
        raise ValueError(f"The device {device!r:.40} is unknown; choose auto, cpu or cuda.")
    return device


def stays(parameters: int) -> bool:
    """Whether a model certainly answers on the CPU of this machine, said without PyTorch."""
    device = named(AUTO)
    return device == "cpu" or (device == AUTO and parameters < LARGE)


def choose_device(
    name: str | torch.device = AUTO,
    parameters: float = math.inf,  # size of the model that answers; without one, as for training
) -> torch.device:
    """The device of a name, where ``auto`` follows the rule; ValueError if it is not here.

    On a GPU float32 is then float32: TF32, which keeps 10 of 23 bits, is switched off.
    """
    import torch

    chosen = named(name)
    there = torch.cuda.is_available
    if chosen == AUTO:
        chosen = "cuda" if parameters >= LARGE and there() else "cpu"
    device = torch.device(chosen)
    if device.type == "cuda":
        if not there():
            why = "There is no CUDA device here, or torch was installed without CUDA"
            raise ValueError(f"{why}; use --device cpu.")
        if (device.index or 0) >= (count := torch.cuda.device_count()):
            raise ValueError(f"There is no device {chosen}; the last one here is cuda:{count - 1}.")
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = False
    return device


def is_full(error: BaseException) -> bool:
    """Whether an error says that a GPU has no memory left; PyTorch need not be loaded."""
    return type(error).__name__ == "OutOfMemoryError"


def on_cpu(model: Model) -> Model:
    """A copy of a model on the CPU, which takes no memory of the GPU; the model itself stays where
    it is."""
    from torch import nn

    memo: dict[int, object] = {id(buffer): buffer.cpu() for buffer in model.buffers()}
    memo |= {
        id(parameter): nn.Parameter(parameter.detach().cpu(), parameter.requires_grad)
        for parameter in model.parameters()
    }
    return copy.deepcopy(model, memo)
