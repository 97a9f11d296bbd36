"""Heads for tests of figures: plain arrays, no model."""

from dataclasses import dataclass, field

import numpy as np
from marked import marked

from transformer import Window
from transformer.view import Check


@dataclass(frozen=True)
class Audit:
    """A passed or failed audit."""

    passed: bool = True
    checks: tuple[Check, ...] = (Check("row sums", 1e-7, 1e-5), Check("outputs", 2e-6, 1e-4))
    imported: bool = False
    changes: tuple[str, ...] = ()
    placed: bool = True
    proofs: tuple[str, ...] = ()
    unmade: tuple[str, ...] = ()
    claim: str = ""
    skipped: tuple[str, ...] = ()
    unchecked: str = ""
    remarks: tuple[str, ...] = ()

    def joined(self, other: object) -> "Audit":
        """The audit with checks of what is drawn, which no figure here asks for."""
        return self


@dataclass(frozen=True)
class View:
    """What a figure needs of a head."""

    kind: str
    query_tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]
    weights: np.ndarray
    mask: np.ndarray
    predicted_tokens: tuple[str, ...] | None = None
    layer: int = 2
    head: int = 4
    model: str = "en-de"
    norm: str = "pre"
    reach: int = 0
    measure: str = "weight"
    measured: None = None
    title: str = ""
    sums: None = None
    score: str = "scaled_dot"
    centres: None = None
    # if none are given, they differ in every cell
    scores: np.ndarray = None  # type: ignore[assignment]
    window: Window = field(default_factory=lambda: Window(0, 1, 0, 1))
    audit: Audit = field(default_factory=Audit)

    @property
    def report(self) -> Audit:
        """Where a copy takes its audit from."""
        return self.audit

    def __post_init__(self) -> None:
        for name in ("query_tokens", "predicted_tokens", "key_tokens"):
            tokens = getattr(self, name)
            object.__setattr__(self, name, None if tokens is None else marked(tokens))
        if self.scores is None:
            cells = np.arange(self.weights.size, dtype=np.float32).reshape(self.weights.shape)
            object.__setattr__(self, "scores", cells)


def view(
    kind: str,
    query_tokens: tuple[str, ...],
    key_tokens: tuple[str, ...],
    seed: int = 0,
    **more: object,
) -> View:
    """A head with random weights; causal for the decoder."""
    shape = len(query_tokens), len(key_tokens)
    mask = np.tri(*shape, dtype=bool) if kind == "decoder" else np.ones(shape, dtype=bool)
    weights = np.random.default_rng(seed).random(shape) * mask
    weights = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
    return View(
        kind,
        query_tokens,
        key_tokens,
        weights,
        mask,
        window=Window(0, shape[0], 0, shape[1]),
        **more,
    )


def decoder_view(length: int = 6) -> View:
    """A decoder head whose tokens are all different."""
    predicted = (*(f"▁w{i}" for i in range(length - 1)), "</s>")
    reads = ("<s>", *predicted[:-1])
    return view("decoder", reads, reads, predicted_tokens=predicted)
