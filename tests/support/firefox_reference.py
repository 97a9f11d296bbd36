"""A translation model of Firefox computed from its items alone, in float64 NumPy."""

from __future__ import annotations

import numpy as np

from transformer.families.firefox.items import Items

EPSILON = 1e-6
"""PyTorch's; Marian's is 1e-6, too small a difference to matter here."""


class Reference:
    """Logits of a target, given a source, from the formulas in Vaswani et al. 2017 and Kim et al. 2019."""

    def __init__(self, items: Items, heads: int, encoder_layers: int, decoder_layers: int) -> None:
        self.items, self.heads = items, heads
        self.depths = encoder_layers, decoder_layers
        names = ("Wemb", "Wemb") if "Wemb" in items.found else ("encoder_Wemb", "decoder_Wemb")
        self.table, self.target_table = (self.weight(name, turned=False) for name in names)

    def weight(self, name: str, turned: bool = True) -> np.ndarray:
        return self.items.numbers(name, rows_are_outputs=turned).astype(np.float64)

    def linear(self, x: np.ndarray, weight: str, bias: str | None = None) -> np.ndarray:
        product = x @ self.weight(weight)
        return product if bias is None else product + self.weight(bias)

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
        return scaled * self.weight(f"{name}_ln_scale") + self.weight(f"{name}_ln_bias")

    def positions(self, length: int, width: int) -> np.ndarray:
        half = width // 2
        angles = np.arange(length)[:, None] * 10000 ** (-np.arange(half) / (half - 1))
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)

    def attention(self, x: np.ndarray, source: np.ndarray, name: str) -> np.ndarray:
        query, key, value = (
            self.linear(side, f"{name}_W{letter}", f"{name}_b{letter}")
            for side, letter in ((x, "q"), (source, "k"), (source, "v"))
        )
        width = query.shape[1] // self.heads
        found = []
        for head in range(self.heads):
            part = slice(head * width, (head + 1) * width)
            scores = query[:, part] @ key[:, part].T / np.sqrt(width)
            powers = np.exp(scores - scores.max(-1, keepdims=True))
            found.append(powers / powers.sum(-1, keepdims=True) @ value[:, part])
        return self.norm(
            x + self.linear(np.concatenate(found, axis=1), f"{name}_Wo", f"{name}_bo"), f"{name}_Wo"
        )

    def feed_forward(self, x: np.ndarray, layer: str) -> np.ndarray:
        inner = np.maximum(0, self.linear(x, f"{layer}_ffn_W1", f"{layer}_ffn_b1"))
        return self.norm(x + self.linear(inner, f"{layer}_ffn_W2", f"{layer}_ffn_b2"), f"{layer}_ffn_ffn")

    def recurrence(self, x: np.ndarray, layer: str) -> np.ndarray:
        forget = 1 / (1 + np.exp(-self.linear(x, f"{layer}_rnn_Wf", f"{layer}_rnn_bf")))
        entering, state, states = self.linear(x, f"{layer}_rnn_W"), np.zeros(x.shape[1]), []
        for f, u in zip(forget, entering, strict=True):
            state = f * state + (1 - f) * u
            states.append(state)
        return self.norm(x + np.maximum(0, np.array(states)), f"{layer}_rnn_ffn")

    def logits(self, source: list[int], target: list[int]) -> np.ndarray:
        """(1 + target, pieces): the first row has read nothing."""
        width = self.table.shape[1]
        x = self.table[source] * np.sqrt(width) + self.positions(len(source), width)
        for layer in range(1, self.depths[0] + 1):
            x = self.attention(x, x, f"encoder_l{layer}_self")
            x = self.feed_forward(x, f"encoder_l{layer}")
        read = np.concatenate([np.zeros((1, width)), self.target_table[target] * np.sqrt(width)])
        y = read + self.positions(len(read), width)
        for layer in range(1, self.depths[1] + 1):
            y = self.recurrence(y, f"decoder_l{layer}")
            y = self.attention(y, x, f"decoder_l{layer}_context")
            y = self.feed_forward(y, f"decoder_l{layer}")
        return y @ self.target_table.T + self.weight("decoder_ff_logit_out_b")
