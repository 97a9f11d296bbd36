"""Effects of positional encodings inside a model: attention by distance, a probe, learned tables, costs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab.cost import measuring
from lab.measurement import Json, listed
from lab.twins.twins import Twins
from transformer.model.encodings.positions import Learned
from transformer.model.network import EncoderDecoder
from transformer.model.sites import AttentionKind
from transformer.runs.bootstrap import Floats, compare, ratio, rounded
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.text.pairs import SentencePair

REACH = 20
"""Largest distance with its own entry; larger ones are added to the ends."""
COST_LENGTHS = (64, 128, 256, 512, 1024)
REPEATS = 15
RIDGE = 1e-3
"""Penalty of a linear probe, as a share of the outputs' mean variance."""
Sentences = list[tuple[Floats, Floats]]
"""Per sentence the encoder's output (tokens, d_model) and the position of each token (tokens,)."""


class DistanceProfile:
    """Attention of the heads of one stack by distance, summed over sentences."""

    def __init__(self, kind: AttentionKind) -> None:
        self.kind = kind
        self.mass: Floats | float = 0.0  # (layers, heads, 2 × REACH + 1) by distance j − i
        self.visible: Floats | float = 0.0  # (2 × REACH + 1,) of attention spread evenly over visible keys
        self.queries = 0  # rows summed
        self.hits: list[Floats] = []  # (layers, heads) rows that point at the previous token, by sentence
        self.rows: list[int] = []  # rows that have a previous token, by sentence

    def add(self, translation: Translation) -> None:
        """Adds one sentence."""
        trace = translation.attention
        assert trace is not None
        layers = range(len(trace.layers[self.kind]))
        weights = np.stack([trace.weights(self.kind, layer) for layer in layers])
        mask = trace.mask(self.kind, 0, 0)
        self.mass = self.mass + by_distance(weights)
        self.visible = self.visible + by_distance(mask / mask.sum(-1, keepdims=True))
        length = weights.shape[-1]
        previous = np.arange(length - 1)
        self.hits.append((weights.argmax(-1)[..., 1:] == previous).sum(-1).astype(np.float64))
        self.rows.append(length - 1)
        self.queries += length

    def result(self) -> Json:
        """Mean mass per row and distance, and the head that finds the previous token most reliably.

        The head is chosen on every other sentence and measured on the rest.
        """
        return {
            "mass": listed(self.mass / self.queries),
            "uniform": listed(self.visible / self.queries),
            "previous": self._previous(),
        }

    def _previous(self) -> Json:
        hits, rows = np.stack(self.hits), np.array(self.rows, np.float64)
        shares = hits[0::2].sum(0) / max(1.0, rows[0::2].sum())
        layer, head = (int(n) for n in np.unravel_index(shares.argmax(), shares.shape))
        held_out = np.stack([hits[1::2, layer, head], rows[1::2]], axis=1)
        found = compare({"head": held_out}, ratio)["head"]["value"] if len(held_out) else None
        return {"layer": layer, "head": head, "accuracy": found}


def by_distance(weights: NDArray[Any]) -> Floats:
    """Sums along the diagonals (…, queries, keys) → (…, 2 × REACH + 1); far ones count in the ends."""
    queries, keys = weights.shape[-2:]
    found = np.zeros((*weights.shape[:-2], 2 * REACH + 1))
    for distance in range(1 - queries, keys):
        place = min(max(distance, -REACH), REACH) + REACH
        found[..., place] += weights.diagonal(distance, -2, -1).sum(-1)
    return found


def attention_profiles(twins: Twins, pairs: Sequence[SentencePair]) -> Json:
    """The ``DistanceProfile`` of both stacks of every twin, with the references forced."""
    models = {}
    for name, twin in twins.items():
        profiles = [DistanceProfile(kind) for kind, site in twin.config.sites.items() if site.own_keys]
        for pair in pairs:
            translation = twin.force(pair.source, pair.target)
            for profile in profiles:
                profile.add(translation)
        models[name] = {profile.kind.value: profile.result() for profile in profiles}
    return {"sentences": len(pairs), "reach": REACH, "models": models}


def position_probes(twins: Twins, pairs: Sequence[SentencePair]) -> Json:
    """R² of a linear probe that reads each source token's position from the encoder's output.

    Cross-attention reads keys and values from that output. A high value shows that positions are there to be
    read, even though no cross-attention applies the encoding. It does not show that the decoder reads them.

    The probe is fitted on every other sentence and measured on the rest. `</s>` is left out, because its
    embedding alone tells that it stands at the end.
    """
    tables = {name: _explained(_outputs(twin, pairs)) for name, twin in twins.items()}
    found = {name: each["value"] for name, each in compare(tables, ratio).items()}
    return {"sentences": len(pairs), "models": found}


@torch.inference_mode()
def _outputs(twin: Translator, pairs: Sequence[SentencePair]) -> Sentences:
    found = []
    for pair in pairs:
        ids = torch.tensor([[*twin.ids(pair.source), twin.config.eos_id]], device=twin.device)
        output = twin.model.encode(ids)[0, :-1].double().cpu().numpy()
        found.append((output, np.arange(len(output), dtype=np.float64)))
    return found


def _explained(sentences: Sentences) -> Floats:
    """(held-out sentences, 2): squares that the probe explains, and all squares, around the fitted mean."""
    weights, centre, mean = _fit(sentences[0::2])
    rows = []
    for output, positions in sentences[1::2]:
        missed = ((output - centre) @ weights + mean - positions) ** 2
        spread = (positions - mean) ** 2
        rows.append((spread.sum() - missed.sum(), spread.sum()))
    return np.array(rows)


def _fit(sentences: Sentences) -> tuple[Floats, Floats, float]:
    """Ridge regression: weights (d_model,), the outputs' mean (d_model,), and the positions' mean."""
    outputs = np.concatenate([output for output, _ in sentences])
    positions = np.concatenate([positions for _, positions in sentences])
    centre, mean = outputs.mean(0), float(positions.mean())
    centred = outputs - centre
    penalty = RIDGE * len(centred) * centred.var(0).mean()
    square = centred.T @ centred + penalty * np.eye(centred.shape[1])
    return np.linalg.solve(square, centred.T @ (positions - mean)), centre, mean


def learned_tables(twins: Twins, source_lengths: Sequence[int], target_lengths: Sequence[int]) -> Json:
    """Norm of every row of a learned table, and the number of training sentences that reach the row."""
    models = {}
    for name, twin in twins.items():
        stacks = {side: twin.model.stack(side).positions for side in twin.config.stacks}
        tables = {side: stack.table for side, stack in stacks.items() if isinstance(stack, Learned)}
        if tables:
            models[name] = {side: listed(table.norm(dim=1).numpy()) for side, table in tables.items()}
    seen = {"encoder": _reached(source_lengths), "decoder": _reached(target_lengths)}
    return {"seen": seen, "models": models}


def _reached(lengths: Sequence[int]) -> list[int]:
    counts = np.bincount(np.asarray(lengths))
    reached: list[int] = counts[::-1].cumsum()[::-1][1:].tolist()
    return reached


def costs(twins: Twins) -> Json:
    """Milliseconds and peak memory of the encoder per source length; None for lengths beyond a learned table.

    Times are the median and quartiles of ``REPEATS`` runs, after an uncounted warm-up run. Models take turns,
    so that a busy moment of the machine affects all of them.
    """
    models: Json = {name: {"milliseconds": [], "quartiles": [], "megabytes": []} for name in twins}
    for length in COST_LENGTHS:
        able = {name: twin.model for name, twin in twins.items() if length <= twin.config.max_positions}
        times = _times(able, length)
        for name in twins:
            measured = _cost(able[name], times[name], length) if name in able else {}
            for measure, kept in models[name].items():
                kept.append(measured.get(measure))
    threads = torch.get_num_threads()
    return {"lengths": list(COST_LENGTHS), "repeats": REPEATS, "threads": threads, "models": models}


def _cost(model: EncoderDecoder, times: list[float], length: int) -> Json:
    quartiles = statistics.quantiles(times, n=4, method="inclusive")
    low, middle, high = (rounded(1000 * each, 3) for each in quartiles)
    peak = rounded(peak_bytes(model, length) / 1e6, 3)
    return {"milliseconds": middle, "quartiles": [low, high], "megabytes": peak}


@torch.inference_mode()
def _times(models: dict[str, EncoderDecoder], length: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(1 + REPEATS):
        for name, model in models.items():
            started = time.perf_counter()
            model.encode(measuring.ordinary_ids(model, length))
            times[name].append(time.perf_counter() - started)
    return {name: each[1:] for name, each in times.items()}


def peak_bytes(model: EncoderDecoder, length: int) -> int:
    """Peak memory of tensors while the encoder runs, without the weights (CPU)."""
    return measuring.peak_bytes(lambda: model.encode(measuring.ordinary_ids(model, length)))
