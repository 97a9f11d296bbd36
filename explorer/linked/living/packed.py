"""The cells of all heads as bytes: one for the colour, one that restores three decimals, two for a
score."""

import json
import zlib
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from explorer.figures.maps.heatmap import levels

Bytes = NDArray[np.uint8]
_MIDDLE = 128
_ZERO = 2**15
"""What the second byte of a cell, and a score in hundredths, count from."""


class CellError(ValueError):
    """A number of a map is not one that a page can hold."""


def are_shares(weights: np.ndarray) -> bool:
    """Whether all weights are from 0 to 1, but for what rounding adds."""
    away = float(np.abs(weights - 0.5).max(initial=0.0))  # NaN if one is none
    return away <= 0.5 + 1 / 1000


def raw_cells(weights: np.ndarray, mask: np.ndarray) -> list[Bytes]:
    """Colour levels, and the numbers themselves as float32: of weights that are any numbers."""
    return [levels(weights, mask), weights.astype("<f4").view(np.uint8)]


def cells(
    weights: np.ndarray,  # (layers, heads, queries, keys), from 0 to 1
    mask: np.ndarray,  # the same shape, true where the query may attend
) -> tuple[Bytes, Bytes]:
    """Colour levels, and how many thousandths weights are away from these; CellError beyond 0 to
    1."""
    with np.errstate(invalid="ignore"):
        colours = levels(weights, mask)
        away = np.rint(1000 * weights.astype(np.float64)) - _near(colours)
    if not (np.abs(away) < _MIDDLE).all():
        raise CellError("A page shows weights from 0 to 1; this run has others.")
    return colours, (away + _MIDDLE).astype(np.uint8)


def _near(content: Bytes) -> NDArray[np.int64]:
    """Thousandths of the weight that a level stands for."""
    return (1000 * (np.maximum(content, 1).astype(np.int64) - 1) + 127) // 254


def scores(raw: np.ndarray) -> tuple[Bytes, Bytes] | None:
    """Hundredths of scores as low and high bytes; None if one of them is too large or no number."""
    hundredths = np.rint(100 * raw.astype(np.float64)) + _ZERO
    if not ((hundredths >= 0) & (hundredths < 2 * _ZERO)).all():
        return None
    words = hundredths.astype(np.uint16)
    return (words & 255).astype(np.uint8), (words >> 8).astype(np.uint8)


def packed(values: Mapping[str, object], arrays: Iterable[Bytes]) -> bytes:
    """JSON and bytes together, zipped: four bytes with the length of the JSON, the JSON, the
    arrays."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    body = b"".join(array.tobytes() for array in arrays)
    return zlib.compress(len(text).to_bytes(4, "little") + text + body, 9)
