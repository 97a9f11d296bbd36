"""One attention head as a figure needs it: plain arrays, tokens and provenance."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from explorer.figures.base import labels


class WindowLike(Protocol):
    """The part of the whole matrix that the arrays hold; positions count from 0, stops are exclusive."""

    @property
    def query_start(self) -> int: ...
    @property
    def query_stop(self) -> int: ...
    @property
    def key_start(self) -> int: ...
    @property
    def key_stop(self) -> int: ...


class HeadLike(Protocol):
    """One attention head over one window; `transformer.HeadView` has this shape."""

    @property
    def kind(self) -> str: ...
    @property
    def layer(self) -> int: ...
    @property
    def head(self) -> int: ...
    @property
    def query_tokens(self) -> tuple[str, ...]: ...
    @property
    def predicted_tokens(self) -> tuple[str, ...] | None: ...
    @property
    def key_tokens(self) -> tuple[str, ...]: ...
    @property
    def window(self) -> WindowLike: ...
    @property
    def scores(self) -> np.ndarray | None: ...
    @property
    def mask(self) -> np.ndarray: ...
    @property
    def weights(self) -> np.ndarray: ...


def named(view: HeadLike) -> str:
    """ "read" or "predicted": whether rows are named by the token they read or the one they predict.

    A view that was read in words states its choice (`explorer.lenses.words.reading.ReadView`). Otherwise
    rows of cross-attention are named by the token they predict, all others by the token they read.
    """
    usual = "predicted" if view.kind == "cross" and view.predicted_tokens is not None else "read"
    return str(getattr(view, "named", usual))


def hidden(view: HeadLike) -> np.ndarray:
    """The weight of each row that lies on hidden columns; zeros if the view hides nothing."""
    mass = getattr(view, "hidden", None)
    return np.zeros(len(view.query_tokens), dtype=np.float32) if mass is None else np.asarray(mass)


def cell_names(view: HeadLike) -> tuple[list[str], list[str]]:
    """The names of the rows and of the columns, in words."""
    return labels.row_names(view.query_tokens, view.predicted_tokens), labels.key_names(view.key_tokens)


class TokenLike(Protocol):
    """A token that a step chose or could have chosen."""

    @property
    def token(self) -> str: ...
    @property
    def token_id(self) -> int: ...
    @property
    def log_prob(self) -> float: ...


class AlternativeLike(TokenLike, Protocol):
    """One candidate for the next token."""

    @property
    def excluded(self) -> bool: ...


class StepLike(TokenLike, Protocol):
    """One decode step: the chosen token and the candidates."""

    @property
    def alternatives(self) -> tuple[AlternativeLike, ...]: ...


def row_sums(view: HeadLike) -> list[str]:
    """The sum of each row: `1.00`, or with hidden columns `0.88 + 0.12`."""
    aside = hidden(view)
    return [
        f"{total:.2f} + {mass:.2f}" if aside.any() else f"{total:.2f}"
        for total, mass in zip(view.weights.sum(1), aside, strict=True)
    ]
