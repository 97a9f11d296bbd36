"""A request before it runs: its source as the model reads it, and its changes with what they put in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.decode.replay import reread
from transformer.interventions import (
    Ablate,
    DropSource,
    EditSource,
    Embeddings,
    HeadOutput,
    Intervention,
    InterventionError,
    OtherRun,
    Patch,
    Setting,
    Stream,
)
from transformer.interventions.acting import Change, Changes
from transformer.interventions.checking import check, edited
from transformer.interventions.means import HeadMeans
from transformer.interventions.places import PatchPlace
from transformer.model.config import ModelConfig
from transformer.model.network import EncoderDecoder
from transformer.runs.wording import Wording
from transformer.trace.recorder import Capture, Recorder
from transformer.trace.records import AttentionTrace
from transformer.trace.report import AuditReport

NO_MEANS = (
    "This model has no mean outputs of its heads; measure them with `python -m lab means`, or ablate by zero."
)


@dataclass(frozen=True, eq=False)
class Equipment:
    """The parts that a translator prepares for every request."""

    model: EncoderDecoder  # the network
    wording: Wording  # its vocabulary
    name: str  # its name
    notes: tuple[str, ...] = ()  # sentences for the reader of every translation
    means: HeadMeans | None = None  # mean outputs of its heads, or None

    @property
    def config(self) -> ModelConfig:
        """The model's config."""
        return self.model.config

    @property
    def device(self) -> torch.device:
        """The device on which the model computes."""
        return self.model.embedding.weight.device


@dataclass(frozen=True, eq=False)
class Prepared:
    """A request that passed every check."""

    source_text: str  # the text as typed
    src_ids: tuple[int, ...]  # the source as the model reads it, ``</s>`` included
    target: int  # most tokens of the output
    changes: tuple[Change, ...]  # the changes, with what they put in


Length = Callable[[int], int]
"""Number of source tokens → most tokens of the output."""


def prepare(
    equipment: Equipment,  # the translator's
    text: str,  # the source
    values: Sequence[Intervention],  # the changes
    length: Length,  # most tokens of the output
    given: int | None = None,  # number of tokens of a given output; None if it is to be decoded
) -> Prepared:
    """Checks a request and computes what its changes put in.

    Raises:
        InputError: The text is empty or too long.
        InterventionError: A change does not fit the request.
    """
    wording = equipment.wording
    typed = (*wording.ids(text), equipment.config.eos_id)
    source = len(typed) - sum(isinstance(each, DropSource) for each in values)
    setting = Setting(equipment.config, len(typed), source, length(source), given)
    check(values, setting)
    names = {each: wording.source_id(each.token) for each in values if isinstance(each, EditSource)}
    changes = tuple(Change(each, _material(equipment, each, setting)) for each in values)
    return Prepared(wording.read(text), edited(typed, values, names), setting.target, changes)


def _material(equipment: Equipment, value: Intervention, setting: Setting) -> Tensor | None:
    """Values that a change puts in, if they must be computed first."""
    if isinstance(value, Ablate) and value.by == "mean":
        if equipment.means is None:
            raise InterventionError(NO_MEANS)
        return equipment.means.of(value.kind, value.layer, value.heads(equipment.config.n_heads))
    if isinstance(value, Patch):
        there = held(run_again(equipment, value.from_run), value.place)
        return there[list(value.taken(len(there), setting.whole(value.place.side)))]
    return None


@torch.inference_mode()
def run_again(equipment: Equipment, other: OtherRun) -> AttentionTrace:
    """Everything that a run computes for a text, its output and its own changes; without output, the encoder.

    Raises:
        InputError: The text is empty or too long.
        InterventionError: One of its own changes does not fit it.
    """
    model, target = equipment.model, other.target
    for token in target or ():
        equipment.wording.token_id(token)
    most, given = equipment.config.max_positions, 1 if target is None else len(target)
    ready = prepare(equipment, other.text, other.interventions, lambda _: most, given)
    within = Changes(ready.changes, equipment.config)
    recorder = Recorder(Capture(residual=True), within, ready.changes)
    memory = model.encode(torch.tensor([ready.src_ids], device=equipment.device), observer=recorder)
    if target is not None:
        reread(model, memory, target, observer=recorder)
    trace = recorder.trace(lambda *_: AuditReport(()))
    assert trace is not None
    return trace


def held(trace: AttentionTrace, place: PatchPlace) -> Tensor:
    """(positions, width): what a place held in a run."""
    match place:
        case Embeddings(side):
            return trace.embeddings[side].input
        case Stream(sublayer):
            return trace.residuals[sublayer].output
        case HeadOutput(kind, layer, head):
            return trace.layer(kind, layer).output[head]
    assert trace.memory is not None
    return trace.memory.used


def unreached(values: Sequence[Intervention], length: int) -> Iterator[Intervention]:
    """The changes of rows of the decoder that an output of ``length`` tokens does not have."""
    for each in values:
        rows = _decoder_rows(each)
        if rows and min(rows) >= length:
            yield each


def _decoder_rows(value: Intervention) -> tuple[int, ...]:
    """The rows of the decoder that a change names; none if it acts on all."""
    if isinstance(value, Patch) and value.place.side == "decoder":
        return tuple(here for here, _ in value.positions or ())
    if getattr(value, "kind", "encoder") == "encoder":
        return ()
    query = getattr(value, "query", None)
    return (query,) if query is not None else getattr(value, "rows", None) or ()
