"""The parts of the running model, from its configuration, and the one that is looked at."""

from collections.abc import Mapping
from dataclasses import dataclass

from explorer.app.address import State
from explorer.app.address.page_values import Diagram
from explorer.app.controls import plain
from explorer.app.maps.looking import cursor_at
from explorer.app.server import per_run
from explorer.app.server.view import View
from explorer.figures.base import captions, labels
from explorer.figures.pages.anatomy import Box
from transformer import Translation, Translator
from transformer.audit import merged
from transformer.config import AttentionKind, ModelConfig, Side, Sublayer
from transformer.view import AuditReport, Check

# by the name in a config: how parts name it, what it is called, its kind of attention
SUBLAYERS = {
    ("encoder", "self_attention"): ("attention", "self-attention", "encoder"),
    ("encoder", "feed_forward"): ("forward", "feed-forward", None),
    ("decoder", "self_attention"): ("attention", "masked self-attention", "decoder"),
    ("decoder", "cross_attention"): ("cross", "cross-attention", "cross"),
    ("decoder", "feed_forward"): ("forward", "feed-forward", None),
}


PLACES: dict[Side, str] = {"encoder": "source token", "decoder": "step"}
"""What a position of each stack is called."""


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """A part of the model, and the token that passes through it."""

    opened: View  # the sentence
    model: Translator
    run: Translation  # with the residual stream
    part: str
    layer: int  # from 0, as all places
    title: str  # the part in words, with its layer
    places: Mapping[Side, int]  # of the cursor, in each stack
    side: Side  # of the part
    position: int  # that passes through it, on its side
    token_id: int  # of the source, or of what the decoder reads
    token: str  # in a sentence, as Markdown

    @property
    def predicted(self) -> int | None:
        """The position of the prediction that the cursor asks about; None if there is none."""
        predictions = self.run.predictions
        return self.step if self.step in predictions else next(iter(predictions), None)

    @property
    def step(self) -> int:
        """Where the cursor stands that walks over the run: the decode step, or a token."""
        return self.places[self.run.config.cursor_side]

    @property
    def sublayer(self) -> Sublayer:
        short = self.part.split("-")[1]
        name = next(
            n for (side, n), (name, *_) in SUBLAYERS.items() if (side, name) == (self.side, short)
        )
        return Sublayer(self.side, self.layer, name)  # type: ignore[arg-type]

    def audit(self, checks: tuple[Check, ...]) -> AuditReport:
        """The checks of the part, together with those of the trace in its layer."""
        kind = AttentionKind(self.side)
        if self.part.startswith("decoder-cross") or kind not in self.run.config.sites:
            kind = AttentionKind.CROSS
        return merged([*self.run.audit((kind, self.layer)).checks, *checks])

    def caption(self, quantity: str) -> str:
        at = f"{PLACES[self.side]} {labels.count(self.position)}"
        return f"{self.title} · {at} · {quantity} · {named(self.run)}"


def named(run: Translation) -> str:
    return captions.model_name(run.model, run.config.placement)


def look(opened: View, now: State) -> tuple[Inspected, tuple[str, ...]]:
    """The part of a state, and sentences on what the visitor asked for and the model lacks."""
    wanted = now.values(Diagram)
    model = opened.source.load()
    places = cursor_at(opened, now)
    known = parts(model.config)
    notes = list[str]()
    name = wanted.part if wanted.part in known else known[0]
    if wanted.part not in (None, name):
        lacking = part_name(wanted.part or "", model.config)
        notes.append(
            f"This model has no part “{lacking}”: {part_name(name, model.config)} is shown."
        )
    side = side_of(name)
    title = part_name(name, model.config)
    last = model.config.stacks[side].n_layers - 1
    wanted_layer = wanted.layer or 0
    layer = min(wanted_layer, last)
    if in_layer(name):
        title += f", layer {labels.count(layer)}"
        if layer != wanted_layer:
            notes.append(
                f"There is no {side} layer {labels.count(wanted_layer)}: "
                f"layer {labels.count(last)} is shown."
            )
    run = per_run.retraced(opened)
    position = places[side]
    token = plain(captions.quote(run.tokens(side)[position]))
    inspected = Inspected(
        opened=opened,
        model=model,
        run=run,
        part=name,
        layer=layer,
        title=title,
        places=places,
        side=side,
        position=position,
        token_id=model.ids_of(run)[side][position],
        token=f"“{token}”",
    )
    return inspected, tuple(notes)


def proof(audit: AuditReport) -> str:
    worst = labels.scientific(max(check.value for check in audit.checks))
    return (
        f"{len(audit.checks)} checks against the model's records; the largest difference is "
        f"{worst}."
    )


def side_of(part: str) -> Side:
    return "encoder" if part.startswith(("encoder", "source")) else "decoder"


def in_layer(part: str) -> bool:
    """Whether every layer has the part."""
    return part.rpartition("-")[2] not in {"embedding", "start", "end", "output"}


ENTRIES: dict[Side, str] = {"encoder": "source-embedding", "decoder": "target-embedding"}
"""The first part of each stack."""


def boxes(config: ModelConfig, adds_positions: bool = True) -> list[list[Box]]:
    """The boxes of each stack, from the input upwards; the last one ends with the output."""
    columns = list[list[Box]]()
    for side, stack in config.stacks.items():
        entry = ENTRIES[side]
        pieces = config.vocab_size if side == "encoder" else config.n_target_pieces
        label = f"embedding{' + position' * adds_positions}"
        shape = f"{pieces:,} × {config.d_model:,}"
        column = [Box(entry, label, shape=shape)]
        column += [Box(f"{side}-start", config.norm_name)] if config.embedding_norm else []
        for name in stack.sublayers:
            short, label, kind = SUBLAYERS[side, name]
            part = f"{side}-{short}"
            inner = config.inner_width(side)
            width = f"{config.d_model:,}"
            shape = heads_in_words(config) if kind else f"{width} → {inner:,} → {width}"
            if not kind and config.gated:
                shape += ", gated"
            if config.parallel and name != stack.sublayers[0]:
                shape += ", beside the attention"
            middle = Box(part, label, kind, repeated=True, shape=shape)
            normed = Box(f"{part}-norm", config.norm_name, repeated=True)
            added = Box(f"{part}-add", "+", repeated=True, adds=2 if config.norm == "pre" else 1)
            column += [normed, middle, added] if config.norm == "pre" else [middle, added, normed]
        column += [Box(f"{side}-end", config.norm_name)] if config.norm == "pre" else []
        columns.append(column)
    ends = f"{config.d_model:,} → {config.n_target_pieces:,}"
    columns[-1].append(Box("output", "linear, softmax", shape=ends))
    return columns


def heads_in_words(config: ModelConfig) -> str:
    """How many heads an attention has, how wide they are, and how many of keys they share."""
    shared = "" if config.n_key_heads is None else f", {config.n_key_heads} of keys"
    return f"{config.n_heads} heads × {config.d_head}{shared}"


def parts(config: ModelConfig) -> list[str]:
    return [box.part for column in boxes(config) for box in column]


def part_name(part: str, config: ModelConfig) -> str:
    """A part in words: `Decoder: addition of cross-attention`."""
    if part == "output":
        return "Output: linear and softmax"
    side = side_of(part)
    norm = config.norm_name
    called = {f"{s}-{short}": label for (s, _), (short, label, _) in SUBLAYERS.items()}
    owner, _, end = part.rpartition("-")
    what = {
        "embedding": "embedding",
        "start": f"{norm} of the embedding",
        "end": f"{norm} at the end",
        "norm": f"{norm} of {called.get(owner)}",
        "add": f"addition of {called.get(owner)}",
    }
    return f"{side.capitalize()}: {called.get(part) or what[end]}"
