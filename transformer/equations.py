"""The equations of attention and of each intervention, written out once more, in NumPy, for the
audit.

They stand apart from the code that ran in the model, and without PyTorch: a file is checked with
them too.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transformer import interventions as do
from transformer.config import ModelConfig
from transformer.interventions import Cell
from transformer.view import Array, BoolArray

HeadChange = tuple[do.Intervention, Array | None]
"""A change of one head, and what it puts in."""


def masked_textbook(
    model_mask: BoolArray, masks: Sequence[do.Intervention], first: int
) -> BoolArray:
    """(queries, keys): a mask after its changes, cell by cell; ``first`` is the first query's
    position."""
    mask = model_mask.copy()
    for change in masks:
        if isinstance(change, do.OfMask):
            mask[_cells(change.allowed, mask.shape, first)] = True
            mask[_cells(change.hidden, mask.shape, first)] = False
    return mask


def _cells(cells: Sequence[Cell], shape: tuple[int, ...], first: int) -> BoolArray:
    """(queries, keys): the cells named."""
    distance = np.arange(shape[1])[None, :] - np.arange(first, first + shape[0])[:, None]
    named = {
        "future": distance > 0,
        "next": distance == 1,
        "self": distance == 0,
        "past": distance < 0,
    }
    cells_named = np.zeros(shape, bool)
    for cell in cells:
        if isinstance(cell, str):
            cells_named |= named.get(cell, np.ones(shape, bool))
        else:
            query, key = cell
            if isinstance(query, str):  # ``LATER``
                cells_named |= (distance < 0) & (np.arange(shape[1]) == key)
                continue
            rows = _acted(None if query is None else [query], first, shape[0])
            cells_named[rows, slice(None) if key is None else slice(key, key + 1)] = True
    return cells_named


def additive_textbook(vector: Array, query: Array, key: Array) -> Array:
    """(…, queries, keys): Σ_i v_i tanh(q_i + k_i), one i after another (Bahdanau et al.

    2015, A.1.2).
    """
    scores: Array = np.zeros((*query.shape[:-1], key.shape[-2]), np.float32)
    for i in range(query.shape[-1]):
        sums = query[..., :, None, i] + key[..., None, :, i]
        scores += vector[..., i, None, None] * np.tanh(sums)
    return scores


def focused_textbook(centres: Array, half_width: int, keys: int) -> tuple[BoolArray, Array]:
    """(queries, keys): the keys of each window, and the Gaussian of each (Luong et al.

    2015, equation 10).
    """
    away = np.abs(np.arange(keys)[None, :] - centres[:, None])
    return away <= half_width, np.exp(-(away**2) / (2 * (half_width / 2) ** 2)).astype(np.float32)


def scored_textbook(
    products: Array,  # q·k
    bias: Array | None,  # what positions add to q·k / √d_k
    divided: bool,  # whether the bias is itself divided by √d_k (Shaw et al. 2018, equation 4)
    model_divisor: float,  # what the model divides q·k by: √d_k, or 1 if its rule does not divide
    changes: Sequence[HeadChange],  # what is changed in the head
) -> Array:
    """(queries, keys): one head's scores after its changes."""
    unscaled = any(isinstance(change, do.Unscaled) for change, _ in changes)
    divisor = 1.0 if unscaled else model_divisor
    scores: Array = products / np.float32(divisor)
    if bias is not None:
        scores = scores + (bias * np.float32(model_divisor / divisor) if divided else bias)
    for change, _ in changes:
        if isinstance(change, do.Temperature):
            scores = scores / np.float32(change.temperature)
    return scores


def weighed_textbook(
    scores: Array, mask: BoolArray, factors: Array | None, first: int, changes: Sequence[HeadChange]
) -> Array:
    """(queries, keys): one head's weights after its changes; before, exp(s) / Σ exp(s) over the
    visible keys, times the Gaussian of local attention."""
    largest = np.where(mask, scores, np.finfo(np.float32).min).max(-1, keepdims=True)
    powers = np.exp(np.where(mask, scores - largest, -np.inf))
    weights: Array = powers / np.maximum(powers.sum(-1, keepdims=True), 1e-30)
    weights = weights if factors is None else weights * factors
    for change, _ in changes:
        if isinstance(change, do.Ablate) and change.by in ("uniform", "previous", "first"):
            for row in _acted(change.rows, first, len(weights)):
                weights[row] = _pattern(change.by, weights[row], mask[row], row + first)
        elif isinstance(change, do.SetRow):
            for row in _acted((change.query,), first, len(weights)):
                weights[row] = _replaced(change, weights[row], mask[row])
    return weights


def _acted(rows: Sequence[int] | None, first: int, count: int) -> list[int]:
    """The rows of an array from position ``first`` on that a change acts on."""
    return [row for row in range(count) if rows is None or row + first in rows]


def _pattern(by: str, weights: Array, mask: BoolArray, query: int) -> Array:
    """(keys,): a row of a fixed pattern; its own weights if the key is hidden or does not exist."""
    if by == "uniform":
        return (mask / max(1, int(mask.sum()))).astype(np.float32)
    key = query - 1 if by == "previous" else 0
    if key < 0 or not mask[key]:
        return weights
    return (np.arange(len(weights)) == key).astype(np.float32)


def _replaced(change: do.SetRow, weights: Array, mask: BoolArray) -> Array:
    """(keys,): the weights given, and the rest in the proportions of the head's own."""
    given = dict(change.given)
    free = np.array([key not in given and bool(mask[key]) for key in range(len(weights))])
    left = max(0.0, 1.0 - sum(given.values()))
    share = weights.astype(np.float64) * free
    share = share if share.sum() > 0 else free.astype(np.float64)
    row = share * (left / max(float(share.sum()), 1e-30))
    for key, weight in given.items():
        row[key] = weight
    return row.astype(np.float32)


def put_textbook(weights: Array, changes: Sequence[HeadChange]) -> Array:
    """(queries, d_head): one head's output after its changes, from row 0 on."""
    output = weights.copy()
    for change, material in changes:
        if isinstance(change, do.Patch):
            output = patched_textbook(output, change, material)
        elif isinstance(change, do.Scale):
            output[_acted(change.rows, 0, len(output))] *= np.float32(change.factor)
        elif isinstance(change, do.Ablate) and change.by in ("zero", "mean"):
            rows = _acted(change.rows, 0, len(output))
            output[rows] = 0.0
            if change.by == "mean":
                output[rows] = np.nan if material is None else material
    return output


def patched_textbook(original: Array, change: do.Patch, material: Array | None) -> Array:
    """(positions, width): a place after a patch, position by position."""
    if material is None:
        return np.full_like(original, np.nan)
    after = original.copy()
    for row, (here, _) in enumerate(change.pairs(len(material))):
        if here < len(after):
            after[here] = material[row]
    return after


def audited_tokens(
    changes: Sequence[do.Intervention],  # all changes
    source: Sequence[str],  # pieces of the source as read
    written: Sequence[tuple[str, int]],  # piece and id of every output token
) -> bool:
    """Whether a run's tokens are those that its changes ask for."""

    def holds(step: int, token: do.Token) -> bool:
        return step < len(written) and token in written[step]

    left_out = [change.position for change in changes if isinstance(change, do.DropSource)]
    for change in changes:
        match change:
            case do.Choose(step, token) if not holds(step, token):
                return False
            case do.Prefix(tokens) if not all(holds(*pair) for pair in enumerate(tokens)):
                return False
            case do.Forbid(token, None) if any(token in pair for pair in written):
                return False
            case do.Forbid(token, int(step)) if holds(step, token):
                return False
            case do.EditSource(position, str(piece)):
                at = position - sum(other < position for other in left_out)
                if not 0 <= at < len(source) or source[at] != piece:
                    return False
    return True


def sinusoids(config: ModelConfig, first: int, length: int) -> NDArray[np.float64]:
    """(length, d_model) the formula of section 3.5, number by number, in the layout of the
    config."""
    width = config.d_model
    first = first + config.first_position
    period = max(1, width - 2 * (config.sine_layout == "inclusive"))
    angles = np.arange(first, first + length)[:, None] / 10_000 ** (np.arange(0, width, 2) / period)
    # an odd width has one sine more
    sines = np.sin(angles)
    cosines = np.cos(angles[:, : width // 2])
    if config.sine_layout != "interleaved":
        return np.concatenate((sines, cosines), 1)
    table = np.empty((length, width))
    table[:, 0::2], table[:, 1::2] = sines, cosines
    return table
