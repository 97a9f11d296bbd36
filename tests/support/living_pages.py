"""Living pages, opened again by arithmetic of their own."""

import base64
import json
import re
import zlib
from typing import Any

import numpy as np

DATA = r'<script type="text/plain" id="run{}" data-sha256="(\w+)" data-place="([^"]*)">([^<]*)<'


class Opened:
    """What a page holds: its JSON, and the cells of every kind as (layers, heads, queries, keys).

    Of a long run: the tiles of all heads, (layers, heads, rows, columns), and the cells of some,
    (heads, queries, keys).
    """

    def __init__(self, page: str, number: str = "") -> None:
        found = re.search(DATA.format(number), page)
        assert found is not None
        self.digest, self.place, self.text = found.groups()
        content = zlib.decompress(base64.b64decode(self.text))
        length = int.from_bytes(content[:4], "little")
        self.run: dict[str, Any] = json.loads(content[4 : 4 + length])
        self.tiles: dict[str, np.ndarray] = {}
        self.cells: dict[str, list[np.ndarray]] = {}
        self.measures: dict[
            str, dict[str, list[np.ndarray]]
        ] = {}  # shares as levels and beside, numbers
        rest = np.frombuffer(content[4 + length :], np.uint8)
        for kind, told in self.run["kinds"].items():
            if "whole" in told:
                tiles = (*told["size"], *told["tile"])
                self.tiles[kind] = rest[: np.prod(tiles)].reshape(tiles)
                rest = rest[np.prod(tiles) :]
            shape = (len(told["whole"]),) if "whole" in told else told["size"]
            shape = (*shape, *told["shape"])
            count = 1 + told["fine"] + 2 * told["scored"]
            size = int(np.prod(shape))
            self.cells[kind] = [
                rest[i * size : (i + 1) * size].reshape(shape) for i in range(count)
            ]
            rest = rest[count * size :]
            if told["raw"]:
                numbers = np.frombuffer(rest[: 4 * size].tobytes(), "<f4").reshape(shape)
                self.cells[kind].append(numbers)
                rest = rest[4 * size :]
            self.measures[kind] = {}
            for name, measure in told.get("measures", {}).items():
                shape = (len(measure["heads"]), *told["shape"])
                size = int(np.prod(shape))
                cells = [rest[i * size : (i + 1) * size].reshape(shape) for i in range(2)]
                numbers = np.frombuffer(rest[2 * size : 6 * size].tobytes(), "<f4").reshape(shape)
                self.measures[kind][name] = [*cells, numbers]
                rest = rest[6 * size :]
        assert not len(rest)

    def weights(self, kind: str) -> np.ndarray:
        """(layers, heads, queries, keys) weights in thousandths."""
        levels, *more = (each.astype(int) for each in self.cells[kind])
        near = (1000 * np.maximum(levels - 1, 0) / 254 + 0.5).astype(int)
        return near + more[0] - 128 if self.run["kinds"][kind]["fine"] else near

    def scores(self, kind: str) -> np.ndarray:
        """(layers, heads, queries, keys) scores in hundredths."""
        low, high = (each.astype(int) for each in self.cells[kind][2:])
        return low + 256 * high - 2**15

    def feed(self, kind: str, layer: int, head: int) -> dict[str, Any]:
        """What a head's feed says, its figure as values without the numbers of its cells."""
        told = self.run["kinds"][kind]
        found = {**told["shared"], **told["own"][layer][head]}
        return {**found, "figure": json.loads(found["figure"])}
