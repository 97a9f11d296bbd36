"""Subject of the page Anatomy: the parts of the running model, and the token that passes through them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import plotly.graph_objects as go

from explorer.app.address import State
from explorer.app.controls import chart, export, plain
from explorer.app.controls.panels import says
from explorer.app.maps.looking import cells_of
from explorer.app.server import per_run
from explorer.app.server.opened import Opened
from explorer.figures.base import captions, labels
from explorer.figures.pages.anatomy import Box
from transformer import Translation, Translator
from transformer.audit import merged
from transformer.config import AttentionKind, ModelConfig, Side, Sublayer
from transformer.view import AuditReport, Check

Drawn = dict[str, export.Picture]
"""Figures by name, for one export."""
_NAMES = {
    "attention": "self_attention",
    "cross": "cross_attention",
    "forward": "feed_forward",
}
_LABELS: dict[str, tuple[str, str | None]] = {
    "encoder-attention": ("self-attention", "encoder"),
    "decoder-attention": ("masked self-attention", "decoder"),
    "decoder-cross": ("cross-attention", "cross"),
    "encoder-forward": ("feed-forward", None),
    "decoder-forward": ("feed-forward", None),
}
_PARTS = {name: part for part, name in _NAMES.items()}


@dataclass(frozen=True)
class Body:
    """The model at work on one sentence, at the cursor."""

    opened: Opened  # the sentence
    now: State  # what the visitor asked for
    translator: Translator  # the model
    traced: Translation  # the translation with the residual stream
    part: str  # the part under inspection
    layer: int  # the layer of the part, from 0
    source: int  # the source token, from 0
    step: int  # the decode step, from 0
    notes: tuple[str, ...]  # what the visitor asked for and the model lacks

    @property
    def side(self) -> Side:
        """The stack that the part belongs to."""
        return side_of(self.part)

    @property
    def position(self) -> int:
        """The position that passes through the part."""
        return self.source if self.side == "encoder" else self.step

    @property
    def sublayer(self) -> Sublayer:
        """The sub-layer that the part belongs to."""
        return Sublayer(self.side, self.layer, _NAMES[self.part.split("-")[1]])  # type: ignore[arg-type]

    @property
    def token(self) -> str:
        """The token at that position: a source token, or the one that the decoder reads."""
        run = self.traced
        return run.tokens(self.side)[self.position]

    @property
    def token_id(self) -> int:
        """The id of the token."""
        run, model = self.traced, self.translator
        if self.side == "encoder":
            return (*model.ids(run.source_text), model.config.eos_id)[self.source]
        return run.steps[self.step - 1].token_id if self.step else model.config.bos_id

    @property
    def name(self) -> str:
        """The token as Markdown."""
        return f"“{plain(captions.quote(self.token))}”"

    def audit(self, checks: tuple[Check, ...]) -> AuditReport:
        """The checks of a part together with those of the trace."""
        kind = AttentionKind(self.side)
        if self.part.startswith("decoder-cross") or kind not in self.translator.config.sites:
            kind = AttentionKind.CROSS
        assert self.traced.attention is not None
        return merged([*self.traced.audit((kind, self.layer)).checks, *checks])

    def caption(self, quantity: str) -> str:
        """Caption of a picture: its subject, its position, and its model."""
        position = labels.count(self.position)
        at = f"source token {position}" if self.side == "encoder" else f"step {position}"
        run = self.traced
        return f"{title(self)} · {at} · {quantity} · {run.model} ({captions.norm_name(run.config.norm)})"


def look(opened: Opened, now: State) -> Body:
    """Choices of a state, fitted to the model."""
    model = opened.source.translator()
    config = model.config
    known, cells = parts(config), cells_of(opened, now)
    part = now.part if now.part in known else known[0]
    last = config.stacks[side_of(part)].n_layers - 1
    return Body(
        opened=opened,
        now=now,
        translator=model,
        traced=per_run.retraced(opened),
        part=part,
        layer=min(now.layer or 0, last),
        source=cells["encoder"][0],
        step=cells["cross"][0],
        notes=_notes(now, part, last, config),
    )


def _notes(now: State, part: str, last: int, config: ModelConfig) -> tuple[str, ...]:
    notes = []
    if now.part is not None and now.part != part:
        notes.append(
            f"This model has no part “{part_name(now.part, config)}”: {part_name(part, config)} is shown."
        )
    if in_layer(part) and (now.layer or 0) > last:
        asked = labels.count(now.layer or 0)
        notes.append(f"There is no {side_of(part)} layer {asked}: layer {labels.count(last)} is shown.")
    return tuple(notes)


def side_of(part: str) -> Side:
    """The stack that a part belongs to."""
    return "encoder" if part.startswith(("encoder", "source")) else "decoder"


def boxes(
    config: ModelConfig,  # the configuration of the model that runs
    adds_positions: bool = True,  # whether the model adds an encoding of positions to the embeddings
) -> tuple[list[Box], list[Box]]:
    """The boxes of encoder and decoder, from the input upwards."""
    columns: list[list[Box]] = []
    sides: tuple[tuple[Side, str, int], ...] = (
        ("encoder", "source-embedding", config.vocab_size),
        ("decoder", "target-embedding", config.n_target_pieces),
    )
    for side, first, pieces in sides:
        enter = Box(
            first, f"embedding{' + position' * adds_positions}", shape=f"{pieces:,} × {config.d_model:,}"
        )
        names = (f"{side}-{_PARTS[name]}" for name in config.stacks[side].sublayers)
        inner = [box for name in names for box in _sublayer(name, config)]
        end = [Box(f"{side}-end", config.norm_name)] if config.norm == "pre" else []
        start = [Box(f"{side}-start", config.norm_name)] if config.embedding_norm else []
        columns.append([enter, *start, *inner, *end])
    columns[1].append(
        Box("output", "linear, softmax", shape=f"{config.d_model:,} → {config.n_target_pieces:,}")
    )
    return columns[0], columns[1]


def parts(config: ModelConfig) -> list[str]:
    """The parts of a model, in the order in which a sentence meets them."""
    return [box.part for column in boxes(config) for box in column]


def _sublayer(name: str, config: ModelConfig) -> list[Box]:
    (label, kind), norm = _LABELS[name], config.norm
    d_model, d_ff = f"{config.d_model:,}", f"{config.inner_width(side_of(name)):,}"
    shape = f"{config.n_heads} heads × {config.d_head}" if kind else f"{d_model} → {d_ff} → {d_model}"
    middle = Box(name, label, kind, repeated=True, shape=shape)
    normed = Box(f"{name}-norm", config.norm_name, repeated=True)
    added = Box(f"{name}-add", "+", repeated=True, adds=2 if norm == "pre" else 1)
    return [normed, middle, added] if norm == "pre" else [middle, added, normed]


def part_name(part: str, config: ModelConfig) -> str:
    """A part in words."""
    if part in _LABELS:
        return f"{part.split('-')[0].capitalize()}: {_LABELS[part][0]}"
    fixed = {
        "source-embedding": "Encoder: embedding",
        "target-embedding": "Decoder: embedding",
        "encoder-start": f"Encoder: {config.norm_name} of the embedding",
        "decoder-start": f"Decoder: {config.norm_name} of the embedding",
        "encoder-end": f"Encoder: {config.norm_name} at the end",
        "decoder-end": f"Decoder: {config.norm_name} at the end",
        "output": "Output: linear and softmax",
    }
    if part in fixed:
        return fixed[part]
    owner, _, what = part.rpartition("-")
    side, label = owner.split("-")[0], _LABELS[owner][0]
    return f"{side.capitalize()}: {config.norm_name if what == 'norm' else 'addition'} of {label}"


def in_layer(part: str) -> bool:
    """Whether every layer has the part."""
    return part.rpartition("-")[2] not in {"embedding", "start", "end", "output"}


def title(body: Body) -> str:
    """The part, with its layer if it has one."""
    name = part_name(body.part, body.traced.config)
    return f"{name}, layer {labels.count(body.layer)}" if in_layer(body.part) else name


def audited(run: Translation, checks: tuple[Check, ...]) -> AuditReport:
    """The checks of the whole trace, together with those of what was read from it."""
    assert run.attention is not None
    return merged([*run.audit().checks, *checks])


def proof(audit: AuditReport) -> str:
    """Proof behind the badge of a figure."""
    worst = max(check.value for check in audit.checks)
    differs = f"the largest difference is {labels.scientific(worst)}."
    return f"{len(audit.checks)} checks against the model's records; {differs}"


def draw(
    body: Body,
    to: Drawn,
    name: str,
    make: Callable[[], go.Figure],
    quantity: str,
    alt: str,
    checks: tuple[Check, ...],
) -> None:
    """Draws a figure of the model's own numbers with its caption and badge, and adds it to the export."""
    chart(f"anatomy.{name}", make(), alt)
    audit = body.audit(checks)
    to[name] = export.Picture(make, body.caption(quantity), audit)
    says(to[name], proof(audit))
