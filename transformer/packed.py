"""How matrices lie in memory, so that products with few rows, as in a decoding step, read them
fast."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer import pages
from transformer.attention import MultiHeadAttention
from transformer.config import AttentionKind
from transformer.layers import Layer
from transformer.model import Network, Transformer

Model = TypeVar("Model", bound=Network)


class PackedProduct:
    """x Wᵀ + b with a packed copy of the matrix; never changed once made, so copies of a model
    share it.

    A processor's bf16 instructions take pairs of adjacent inputs. From a matrix in plain order
    oneDNN builds these pairs at every call, which takes as long as reading float32 (*measured*).
    Packed once, the table of 58,000 pieces is read 1.3 to 1.6 times as fast. With few rows and
    small matrices, the call itself costs most: one call for queries, keys and values makes greedy
    search at OPUS-MT's size about 1.08 times as fast (*measured*).
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous())
        self._bias = None if bias is None else bias.detach()
        self._multiply = torch.ops.mkldnn._linear_pointwise.default

    def __call__(self, x: Tensor) -> Tensor:
        """(…, in) → (…, out)."""
        product: Tensor = self._multiply(x, self._packed, self._bias, "none", [], "")
        return product

    def is_of(self, *maps: nn.Linear) -> bool:
        """Whether the maps still are those that were packed: in bfloat16; other values are not
        seen."""
        return maps[0].weight.dtype == torch.bfloat16

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedProduct:
        return self


class PackedLinear(nn.Linear):
    """A linear map that multiplies by a packed copy; ``weight`` and ``bias`` remain readable."""

    def __init__(self, weight: Tensor, bias: nn.Parameter | None = None) -> None:
        super().__init__(weight.shape[1], weight.shape[0], bias=False, device="meta")
        self.weight = weight
        self.register_parameter("bias", bias)
        self._product = PackedProduct(weight, bias)

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) → (…, out)."""
        return self._product(x)


@cache
def check_bfloat16() -> None:
    """Multiplies in bfloat16 in a process of its own, once; ValueError if the product ended the
    process.

    Some virtual machines report a processor's matrix units but forbid their use: the first product
    ends the process.
    """
    product = "import torch; x = torch.ones(64, 64).bfloat16(); torch.nn.functional.linear(x, x)"
    if subprocess.run([sys.executable, "-c", product], capture_output=True, check=False).returncode:
        raise ValueError(
            "This machine cannot compute in bfloat16: use float32, or set "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 before the start if its processor has matrix "
            "units that a virtual machine forbids."
        )


def can_pack() -> bool:
    """True if this processor multiplies in bfloat16 through oneDNN."""
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(available and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def pack(model: Network) -> None:
    """Packs the matrices that every decoding step reads, in bfloat16, after ``join_inputs``: at
    least that of the output."""
    layers = model.decoder.layers if isinstance(model, Transformer) else ()
    for layer in layers:
        assert isinstance(layer, Layer)
        attention = layer.self_attention
        attention.joined = PackedProduct(attention.joined.weight, attention.joined.bias)
        attention.out_proj = PackedLinear(attention.out_proj.weight, attention.out_proj.bias)
        assert layer.cross_attention is not None
        for module in (layer.cross_attention, layer.feed_forward):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.Linear):
                    setattr(module, name, PackedLinear(child.weight, child.bias))
    model.output = PackedLinear(model.projection[0])


def for_few_rows(tensor: Tensor) -> Tensor:
    """The same matrix (out, in), laid out in memory as (in, out) unless it has more inputs than
    outputs.

    ``python -m benchmarks layouts`` measures what a product with one row gains by it.
    """
    if _outputs_first(tensor):
        return tensor.contiguous()
    return tensor.t().contiguous().t()


def copied_for_few_rows(tensor: Tensor) -> Tensor:
    """A float32 copy on the CPU, in memory of its own, laid out as by ``for_few_rows``.

    By NumPy where it can: on a busy machine PyTorch's threads wait for one another.
    """
    if not _outputs_first(tensor):
        return pages.empty(*reversed(tensor.shape)).copy_(tensor.t()).t()
    copy = pages.empty(*tensor.shape)
    if tensor.dtype != torch.float32:
        return copy.copy_(tensor)
    np.copyto(copy.numpy(), tensor.numpy())
    return copy


def _outputs_first(tensor: Tensor) -> bool:
    """Whether a tensor lies in the plain order: as no matrix, or one with more inputs than
    outputs."""
    return tensor.dim() != 2 or tensor.shape[1] > tensor.shape[0]


def _joined(matrices: list[Tensor]) -> Tensor:
    """Matrices (out, in) below one another, laid out as by ``for_few_rows``, as they are."""
    n_outputs = sum(len(matrix) for matrix in matrices)
    n_inputs = matrices[0].shape[1]
    if n_outputs < n_inputs:
        return torch.cat(matrices).contiguous()
    turned = [matrix.t() for matrix in matrices]
    if turned[0].dtype != torch.float32 or turned[0].device.type != "cpu":
        return torch.cat(turned, dim=1).contiguous().t()
    joined = torch.empty(n_inputs, n_outputs)  # no mapping: where the matrices before it lay
    np.concatenate([matrix.numpy() for matrix in turned], axis=1, out=joined.numpy())
    return joined.t()


class JoinedProduct:
    """x Wᵀ + b for maps whose parameters are parts of W and b; a copy of the model does without it.

    A copy has parameters of its own, which are not parts of this matrix.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, widths: list[int]) -> None:
        self.weight, self.bias = weight, bias
        biases = [] if bias is None else torch.split(bias, widths)
        self._places = [rows.data_ptr() for rows in (*torch.split(weight, widths), *biases)]

    def __call__(self, x: Tensor) -> Tensor:
        """(…, in) → (…, out of all)."""
        return F.linear(x, self.weight, self.bias)

    def is_of(self, *maps: nn.Linear) -> bool:
        """Whether the parameters of the maps still are parts of this matrix: none was moved or
        replaced."""
        weights = [linear.weight for linear in maps]
        biases = [linear.bias for linear in maps if linear.bias is not None]
        return [parameter.data_ptr() for parameter in (*weights, *biases)] == self._places

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        return None


def join_inputs(model: nn.Module) -> None:
    """Puts W^Q, W^K and W^V of a decoder's self-attentions side by side, for one product instead of
    three.

    The parameters remain, as parts of that matrix.
    """
    for module in model.modules():
        if isinstance(module, MultiHeadAttention) and module.kind == AttentionKind.DECODER:
            maps = module.q_proj, module.k_proj, module.v_proj
            widths = [linear.out_features for linear in maps]
            weight = _joined([linear.weight.data for linear in maps])
            for linear, rows in zip(maps, torch.split(weight, widths), strict=True):
                linear.weight.data = rows
            bias = None
            if maps[0].bias is not None:
                bias = torch.cat([linear.bias.data for linear in maps])
                for linear, added in zip(maps, torch.split(bias, widths), strict=True):
                    linear.bias.data = added
            module.joined = JoinedProduct(weight, bias, widths)


def convert(model: Model, device: torch.device | str, dtype: torch.dtype = torch.float32) -> Model:
    """Moves a model to a device, changes its computing type, and lays out its matrices for few
    rows.

    On a CPU the encoder still computes in float32, from embeddings of the new type. The encoder
    reads its weights once per sentence, for many rows; 16 bits then gain little, or even lose on
    processors without units for them. ValueError if this processor cannot multiply in bfloat16.
    """
    for module in model.modules():
        if not isinstance(module, nn.RNNBase):  # cuDNN takes its matrices only as they are
            for parameter in module.parameters(recurse=False):
                parameter.data = for_few_rows(parameter.data)
    model.to(device)
    encoder_too = torch.device(device).type != "cpu"
    for name, child in model.named_children():
        if name != "encoder" or encoder_too:
            child.to(dtype)
    if model.output_bias is not None:
        model.output_bias.data = model.output_bias.data.to(dtype)
    join_inputs(model)
    if dtype == torch.bfloat16 and not encoder_too:
        check_bfloat16()
        if can_pack():
            pack(model)
    return model
