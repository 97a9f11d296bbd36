"""The way back from a logit, computed forwards: each part is a vector that is carried through both stacks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from lenses.again.carried import read_by_keys
from lenses.again.cells import FEW, compared
from lenses.again.effects import LIMIT as EFFECT_LIMIT
from lenses.again.plain import carried_on, exactly, output_columns, plain_part
from lenses.inside.weights import multi_head
from lenses.measures.maps import LEAST
from lenses.measures.stream import BIASES, recorded
from lenses.measures.way_back import WayBack
from transformer.interventions import hide
from transformer.model.network import Network
from transformer.model.sites import AttentionKind
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.trace.report import AuditReport
from transformer.trace.view import Array

LIMIT = 1e-3
"""Share of the largest part by which a part may miss."""
Place = tuple[int, ...]


def audit_way_back(
    model: Network,
    run: Translation,
    step: int,  # the row of the decoder, from 0
    tokens: tuple[int, int | None],  # the token whose logit is followed, and the one that is subtracted
    found: WayBack,  # as it is drawn
    count: int | None = FEW,  # parts of each sort to compute again; None for all
) -> AuditReport:
    """Whether parts belong to the heads, positions and words that they are drawn for."""
    weight, _ = model.projection
    asked = exactly(weight[tokens[0]]) - (0.0 if tokens[1] is None else exactly(weight[tokens[1]]))
    asked = asked * model.config.output_scale
    seed, cross = recorded(run).hash, AttentionKind.CROSS

    @cache
    def reads(kind: AttentionKind, layer: int) -> Array:
        return read_by_keys(run, kind, layer)

    @cache
    def weights(kind: AttentionKind, layer: int) -> Array:
        return recorded(run).weights(kind, layer)

    @cache
    def matrices(kind: AttentionKind, layer: int, head: int) -> tuple[Array, Array]:
        weight = multi_head(model, kind, layer).v_proj.weight
        width = len(weight) // model.config.n_heads
        return exactly(weight[head * width : (head + 1) * width]), output_columns(model, kind, layer, head)

    def through(kind: AttentionKind, layer: int, head: int, query: int, key: int, read: Array) -> Array:
        """What a head writes at a query of what it reads at a key, without biases."""
        value, out = matrices(kind, layer, head)
        weight = float(weights(kind, layer)[head, query, key])
        written: Array = out @ (weight * (value @ read))
        return written

    def answered(kind: AttentionKind, layer: int, wrote: Array) -> float:
        after = model.config.sites[kind].sublayer(layer)
        return float(carried_on(model, run, after, wrote, step) @ asked)

    def at_source(part: Array, position: int) -> float:
        """A part of the encoder's output, through all heads that read it; a layer's are carried on as one."""
        layers, heads, _ = found.source.shape
        return sum(
            answered(
                cross,
                layer,
                np.sum([through(cross, layer, head, step, position, part) for head in range(heads)], 0),
            )
            for layer in range(layers)
        )

    def read(kind: AttentionKind, places: list[Place]) -> list[float]:
        return [
            answered(kind, layer, through(kind, layer, head, step, key, reads(kind, layer)[key]))
            for layer, head, key in places
        ]

    def wrote(places: list[Place]) -> list[float]:
        vectors = (plain_part(model, run, "encoder", found.writers[n], at) for n, at in places)
        return [at_source(part, at) for part, (_, at) in zip(vectors, places, strict=True)]

    def words(places: list[Place]) -> list[float]:
        values = []
        for layer, head, at, word in places:
            kind = AttentionKind.ENCODER
            part = through(kind, layer, head, at, word, reads(kind, layer)[word])
            after = model.config.sites[kind].sublayer(layer)
            values.append(at_source(carried_on(model, run, after, part, at), at))
        return values

    told = AuditReport(())
    writers = [n for n, writer in enumerate(found.writers) if writer.what != BIASES]
    sorts = (
        ("source positions", found.source, [*np.ndindex(found.source.shape)], lambda at: read(cross, at)),
        (
            "positions of the prefix",
            found.prefix,
            [*np.ndindex(found.prefix.shape)],
            lambda at: read(AttentionKind.DECODER, at),
        ),
        ("encoder", found.encoder, [(n, at) for n in writers for at in range(found.encoder.shape[1])], wrote),
        ("source words", found.words, [*np.ndindex(found.words.shape)], words),
    )
    for name, drawn, places, again in sorts:
        values = [float(drawn[each]) for each in places]
        told = told.joined(compared(name, places, values, again, seed, LIMIT, count))
    return told


def audit_hidden(
    translator: Translator,
    run: Translation,
    step: int,
    effects: Array,  # (source,) Δ log p of the token of the step without each source position, as drawn
    count: int = 2,  # runs to make again, those of the largest effects first
) -> AuditReport:
    """Whether effects are those of their positions: the same runs as interventions, each run verified."""

    def again(places: list[int]) -> list[float]:
        found = []
        for place in places:
            made = translator.force(run.source_text, run.target_ids, interventions=[hide(place)])
            change = made.log_probs[step] - run.log_probs[step]
            found.append(change if made.audit().passed else np.nan)
        return found

    places, seed = [*range(len(effects))], recorded(run).hash
    found = compared(
        "effects, hidden", places, effects.tolist(), again, seed, EFFECT_LIMIT, count, floor=LEAST
    )
    made = min(count, len(effects))
    return replace(found, claim=f"from {len(effects):,} runs, {made} made again and verified")
