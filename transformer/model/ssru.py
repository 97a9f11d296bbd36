"""The simple recurrent unit that may stand where a decoder layer has masked self-attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transformer.model.cache import CellCache
from transformer.model.config import ModelConfig


class Ssru(nn.Module):
    """max(0, c_t) with c_t = f_t ⊙ c_{t−1} + (1 − f_t) ⊙ W x_t and f_t = σ(W_f x_t + b_f).

    The simpler simple recurrent unit (Kim et al. 2019, section 3.1): one product less than the SRU of Lei et
    al. (2018), and a state of constant size where masked self-attention keeps every key and value.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.input = nn.Linear(config.d_model, config.d_model, bias=False)
        self.forget = nn.Linear(config.d_model, config.d_model)

    def forward(
        self,
        x: Tensor,  # the new rows
        cache: CellCache | None = None,  # the state after the rows before; None if ``x`` begins at position 0
    ) -> Tensor:
        """(batch, length, d_model) → (batch, length, d_model), from the cached state on."""
        forget = torch.sigmoid(self.forget(x))
        states = run_cells(forget, (1 - forget) * self.input(x), None if cache is None else cache.state)
        if cache is not None:
            cache.advance(states[:, -1], x.shape[1])
        return states.relu()


def run_cells(
    forget: Tensor,  # (batch, length, d_model) f
    entering: Tensor,  # (batch, length, d_model) u, what enters the state at each position
    before: Tensor | None = None,  # (batch, d_model) the state before the first position; None for zeros
) -> Tensor:
    """(batch, length, d_model) states c_t = f_t ⊙ c_{t−1} + u_t."""
    state = torch.zeros_like(entering[:, 0]) if before is None else before
    states = []
    for kept, new in zip(forget.unbind(1), entering.unbind(1), strict=True):
        state = torch.addcmul(new, kept, state)
        states.append(state)
    return torch.stack(states, dim=1)
