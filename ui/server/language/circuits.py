"""The circuit of two heads of a language model, computed while a visitor waits, and then kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lab.language.inducing import LENGTH, random_pieces
from lab.language.induction import followers
from transformer import Capture
from transformer.lenses.circuits.matrices import Through, copying, matching
from transformer.lenses.circuits.path import Into, Patched, patched
from transformer.lenses.circuits.reading import reading
from transformer.lenses.measures.stream import Writer
from transformer.model.sites import Head
from transformer.trace.report import AuditReport, Check
from transformer.trace.view import Array
from ui.server import catalogue
from ui.server.stores import kept

COUNT = 4
"""Sequences that are read."""
INTO: tuple[Into, ...] = ("key", "query", "value")


@dataclass(frozen=True)
class Finding:
    """How well the later head finds the right key, and what that is worth; means over sequences."""

    weight: float  # on the piece that followed the same piece before, in the rows of the second copy
    loss: float  # of the second copy without its first piece, in nats a piece


@dataclass(frozen=True, eq=False)
class Circuit:
    """An earlier head, and a later one that reads it."""

    sequences: int
    length: int  # pieces of a copy
    names: tuple[str, ...]  # what wrote the streams of the keys
    parts: Array  # (names,) advantage of the right key in the score, by what wrote the key's stream
    of_writer: float  # the part of the earlier head
    whole: Finding
    cut: dict[Into, Finding]  # without what the earlier head wrote, in what the later one makes of the stream
    others: tuple[Finding, ...]  # without what each other head of its layer wrote, in the keys
    audit: AuditReport


@dataclass(frozen=True, eq=False)
class Matrices:
    """Scores of every head's matrices; each (layers, heads)."""

    distance: int
    copying: Array
    matching: Array
    through: Array


def circuit(name: str, seed: int, writer: Head, reader: Head) -> Circuit:
    """What a later head reads of an earlier one, on random pieces said twice."""
    opened = catalogue.writer(name)

    def make() -> Circuit:
        generator, config = opened.generator, opened.config
        length = min(LENGTH, (config.trained_length or 2 * LENGTH + 2) // 2 - 1)
        sequences = random_pieces(generator, length, COUNT, seed)
        others = [head for head in range(config.n_heads) if head != writer[1]]
        parts, found = [], []
        checks: list[Check] = []
        for ids in sequences.ids:
            text = generator.pieces((*ids[1:].tolist(), config.eos_id))
            run = generator.force(text, capture=Capture(residual=True))
            right = (followers(ids) > 0) & sequences.again[:, None]
            read = reading(generator.model, run, "decoder", *reader)
            parts.append(read.advantage(right, run.mask("decoder", *reader)))
            checks += read.audit.checks
            own = Patched(run.weights("decoder", *reader), np.array(run.log_probs))
            runs = [patched(generator.model, run, writer, reader, into) for into in INTO]
            runs += [patched(generator.model, run, (writer[0], other), reader) for other in others]
            found.append([_finding(each, right, length) for each in (own, *runs)])
        means = [Finding(*map(float, pair)) for pair in np.mean(found, axis=0)]
        mean: Array = np.mean(parts, axis=0)
        itself = read.writers.index(Writer("self_attention", *writer))
        return Circuit(
            len(sequences.ids),
            length,
            tuple(map(str, read.writers)),
            mean,
            float(mean[itself]),
            means[0],
            dict(zip(INTO, means[1:], strict=False)),
            tuple(means[1 + len(INTO) :]),
            replace(read.audit, checks=(max(checks, key=lambda each: each.value),)),
        )

    made: Circuit = kept("circuits").get((name, "circuit", seed, writer, reader, id(opened)), make)
    return made


def _finding(run: Patched, right: np.ndarray, length: int) -> tuple[float, float]:
    return float(run.weights[right].mean()), float(-run.log_probs[length + 1 : 2 * length].mean())


def matrices(name: str, distance: int, writer: Head) -> Matrices:
    """Copying and matching of every head; the keys' tokens plain, and through an earlier head."""
    opened = catalogue.writer(name)

    def make() -> Matrices:
        model = opened.generator.model
        through = matching(model, distance, through=Through(*writer))
        return Matrices(distance, copying(model), matching(model, distance), through)

    made: Matrices = kept("circuits").get((name, "matrices", distance, writer, id(opened)), make)
    return made
