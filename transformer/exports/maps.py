"""A run with the maps of all its heads as one small file, which is read without PyTorch.

The head (``transformer.storage.packed``) holds the run (``transformer.exports.record``), the
SHA-256 of each file of the model that decides a run, and the checks of every head. The arrays are,
by kind, ``encoder.weights`` and ``encoder.scores``, (layers, heads, queries, keys) float32, and
``encoder.mask``, (queries, keys) bool, True = may attend; also ``decoder.…`` and ``cross.…``.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from itertools import starmap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transformer.config import AttentionKind, Place
from transformer.exports.record import run_from_dict, run_to_dict
from transformer.run import Holding, Translation
from transformer.storage.description import Digests, model_digests
from transformer.storage.packed import read_packed, write_packed
from transformer.view import Array, AuditReport, BoolArray, Check, HeadMap, Window, sealed

SavedCheck = tuple[str, float, float]
"""Name, value and limit of a check."""


@dataclass(frozen=True, eq=False, repr=False)
class RunOfMaps(Translation):
    """A run whose maps are known, while its trace is not: ``attention`` is None."""

    @property
    def holds(self) -> Holding:
        """The maps alone."""
        return "maps"

    @property
    def has_maps(self) -> bool:
        """They are."""
        return True

    def weights(self, kind: AttentionKind | str, layer: int, head: int) -> Array:
        """(queries, keys) weights of a whole head."""
        raise NotImplementedError

    def layer_weights(
        self, kind: AttentionKind | str, layer: int, window: Window | None = None
    ) -> Array:
        """(heads, queries, keys) weights of all heads of a layer."""
        cells = (slice(None), slice(None))
        if window is not None:
            cells = (window.queries, window.keys)
        n_heads = self.config.sizes[AttentionKind(kind)][1]
        return np.stack([self.weights(kind, layer, head)[cells] for head in range(n_heads)])

    def mask(self, kind: AttentionKind | str, layer: int, head: int) -> BoolArray:
        """(queries, keys) of a whole head, True = may attend."""
        raise NotImplementedError

    def scores(self, kind: AttentionKind, layer: int, head: int) -> Array | None:
        """(queries, keys) before the mask, of a whole head; None if they are not known."""
        raise NotImplementedError

    def report(self, kind: AttentionKind, layer: int, head: int) -> AuditReport:
        """What is known of the numbers of a head."""
        raise NotImplementedError

    def row_sums(self, kind: AttentionKind, layer: int, head: int) -> Array | None:
        """(queries,) what the rows of a head sum to; None if each sums to 1."""
        return None

    def audit(self, *places: Place) -> AuditReport:
        """The reports of all heads of some attentions as one, of all without any; IndexError if
        there is no such layer."""
        chosen = places or [
            (kind, layer)
            for kind, site in self.config.sites.items()
            for layer in range(site.n_layers)
        ]
        report = AuditReport(())
        for kind, layer in chosen:
            for head in range(self.config.sizes[kind][1]):
                report = report.joined(self.report(kind, layer, head))
        return report

    def map(
        self, kind: AttentionKind | str, layer: int, head: int, window: Window | None = None
    ) -> HeadMap:
        """One head, or a window of it; the audit is that of the whole head."""
        kind = AttentionKind(kind)
        mask = self.mask(kind, layer, head)
        scores = self.scores(kind, layer, head)
        sums = self.row_sums(kind, layer, head)
        window = window or Window(0, mask.shape[0], 0, mask.shape[1])
        cells = (window.queries, window.keys)
        labels = self.labels(kind).of(window)
        report = self.report(kind, layer, head)
        drawn = HeadMap(
            kind=kind,
            layer=layer,
            head=head,
            model=self.model,
            norm=self.config.placement,
            title=self.config.sites[kind].title,
            query_tokens=labels.queries,
            predicted_tokens=labels.predicted,
            key_tokens=labels.keys,
            window=window,
            scores=_part(scores, cells),
            mask=mask[cells],
            weights=self.weights(kind, layer, head)[cells],
            sums=_part(sums, window.queries),
            report=report,
        )
        return sealed(drawn, report)


def _part(array: Array | None, cells: slice | tuple[slice, slice]) -> Array | None:
    """A part of an array, if there is one."""
    if array is None:
        return None
    return array[cells]


@dataclass(frozen=True, eq=False, repr=False)
class MappedRun(RunOfMaps):
    """A run with its maps in a file, beside the model that made it."""

    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)  # of the file, by name
    # by kind, layer and head: parts of checks
    checks: Mapping[str, list[list[list[SavedCheck]]]] = field(default_factory=dict)
    # SHA-256 of the files of the model that made the run
    digests: Digests = field(default_factory=dict)

    def weights(self, kind: AttentionKind | str, layer: int, head: int) -> Array:
        """(queries, keys) weights of a whole head."""
        weights: Array = self.arrays[f"{AttentionKind(kind)}.weights"][layer, head]
        return weights

    def mask(self, kind: AttentionKind | str, layer: int, head: int) -> BoolArray:
        """(queries, keys) of a whole head, True = may attend."""
        return self.arrays[f"{AttentionKind(kind)}.mask"].astype(bool, copy=False)

    def scores(self, kind: AttentionKind, layer: int, head: int) -> Array:
        """(queries, keys) before the mask, of a whole head."""
        scores: Array = self.arrays[f"{kind}.scores"][layer, head]
        return scores

    def report(self, kind: AttentionKind, layer: int, head: int) -> AuditReport:
        """The checks that were made when the file was written."""
        return AuditReport(tuple(starmap(Check, self.checks[kind][layer][head])))


def save_maps(translation: Translation, directory: Path, path: Path) -> None:
    """Writes a run, and the maps of all its heads, to a file; the directory is that of the
    model."""
    arrays = dict[str, NDArray[np.generic]]()
    checks = dict[str, list[list[list[SavedCheck]]]]()
    for kind, site in translation.config.sites.items():
        maps = [
            [translation.map(kind, layer, head) for head in range(translation.config.n_heads)]
            for layer in range(site.n_layers)
        ]
        arrays[f"{kind}.weights"] = np.array([[drawn.weights for drawn in row] for row in maps])
        arrays[f"{kind}.scores"] = np.array([[drawn.scores for drawn in row] for row in maps])
        arrays[f"{kind}.mask"] = maps[0][0].mask
        checks[kind] = [
            [[astuple(check) for check in drawn.audit.checks] for drawn in row] for row in maps
        ]
    head = {
        "run": run_to_dict(translation),
        "digests": model_digests(directory),
        "checks": checks,
    }
    write_packed(path, head, arrays)


def load_maps(path: str | Path) -> MappedRun:
    """Reads a file of this installation that ``save_maps`` wrote; CheckpointError if it is
    damaged."""
    head, arrays = read_packed(Path(path))
    for array in arrays.values():
        array.flags.writeable = False
    run = run_from_dict(head["run"])
    return MappedRun(**vars(run), arrays=arrays, checks=head["checks"], digests=head["digests"])
