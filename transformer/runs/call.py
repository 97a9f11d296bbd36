"""One call of a model: the request checked, the recording, its audit, and the finished run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from transformer.audit import TOKENS, audit
from transformer.config import ModelConfig, Place
from transformer.decode.request import DecodeRequest
from transformer.decode.steps import Hypothesis, Step, alternatives
from transformer.equations import audited_tokens
from transformer.hooks import (
    HookFunction,
    Hooks,
    function_edits,
)
from transformer.interventions import (
    Ablate,
    Embeddings,
    HeadMeans,
    HeadOutput,
    Intervention,
    InterventionError,
    OtherRun,
    Patch,
    PatchPlace,
    RunShape,
    Stream,
    check,
)
from transformer.interventions.edits import Change
from transformer.model import Network
from transformer.runs.search import Search
from transformer.runs.translation import Alternative, DecodeStep, Translation
from transformer.runs.wording import Wording
from transformer.trace import AttentionTrace, Capture, TokenTrace, hooks_of, trace_of
from transformer.view import AuditReport, Check

EMPTY = "The model wrote an empty text."
UNKNOWN = "The output has {} <unk>, where the model wrote something that its vocabulary cannot spell."
AnyModel = TypeVar("AnyModel", bound=Network)
Done = TypeVar("Done", bound=Translation)
"""The finished run: a translation or a generation."""


@dataclass(frozen=True, eq=False)
class Equipment(Generic[AnyModel]):
    """The parts that a translator or a text generator prepares for every call."""

    model: AnyModel  # the network
    wording: Wording  # its vocabulary
    name: str  # its name
    notes: tuple[str, ...] = ()  # sentences for the reader of every run
    means: HeadMeans | None = None  # mean outputs of its heads, or None

    @property
    def config(self) -> ModelConfig:
        """The model's config."""
        return self.model.config

    @property
    def device(self) -> torch.device:
        """The device on which the model computes."""
        return self.model.embedding.weight.device


class Call(Generic[AnyModel, Done]):
    """A request that passed every check; it can be put to the model again and again.

    Raises:
        InterventionError: A change does not fit the request.
        ValueError: A hook acts on no attention of the model.
    """

    no_means: ClassVar[str]
    too_long: ClassVar[str]
    cut: ClassVar[str]
    ended: ClassVar[str]
    """Sentences for the reader."""
    source_text, source_ids, source_tokens = "", tuple[int, ...](), tuple[str, ...]()
    """The text as the model read it, and its ids and pieces."""
    unread: tuple[str, ...] = ()
    """What the vocabulary has no piece for, in sentences."""

    def __init__(
        self,
        equipment: Equipment[AnyModel],  # the model's
        values: Sequence[Intervention],  # the changes
        hooks: Mapping[str, HookFunction],  # functions of Python that act in attention
        shape: RunShape,  # what the changes are checked against
    ) -> None:
        function_edits(hooks, equipment.config)
        check(values, shape)
        self.equipment, self.hooks, self.target = equipment, hooks, shape.target
        self.given = shape.forced is not None
        self.changes = tuple(Change(each, self._material(each, shape)) for each in values)

    def answer(self, **parts: Any) -> Done:
        """The finished run of its parts."""
        raise NotImplementedError

    def request(self, observer: Hooks | None, steps: Hooks | None) -> DecodeRequest:
        """The request to decode; ``observer`` watches the source, and ``steps`` the decoding steps."""
        raise NotImplementedError

    def record(self, request: Any, token_ids: Sequence[int], observer: Hooks | None) -> None:
        """Passes a finished output through the model once more, for somebody who watches."""
        raise NotImplementedError

    def distributions(self, token_ids: Sequence[int], observer: Hooks | None = None) -> Tensor:
        """(target, vocab_size) log-probabilities, from a new pass without a cache, watched or not.

        Raises:
            OverflowedError: The model's numbers overflow.
        """
        raise NotImplementedError

    def call_of(self, run: OtherRun) -> Call[AnyModel, Done]:
        """The call of another run, with its output given."""
        raise NotImplementedError

    def tokens(self, ids: Sequence[int], text: str) -> dict[str, TokenTrace]:
        """What each side read, and what was written, for an output."""
        read, pieces = (self.equipment.config.bos_id, *ids[:-1]), self.equipment.wording.pieces
        found: dict[str, TokenTrace] = {
            "decoder": TokenTrace(read, pieces(read)),
            "written": TokenTrace(tuple(ids), pieces(ids), text),
        }
        if self.source_ids:
            found["encoder"] = TokenTrace(self.source_ids, self.source_tokens, self.source_text)
        return found

    def left_out(self, ids: Sequence[int], trace: AttentionTrace | None) -> tuple[str, ...]:
        """A sentence if an output covers much less than its source; the recording, if there is one."""
        return ()

    def trained_length_of(self, written: int) -> int:
        """Number of tokens that is compared with training; ``written`` is that of the output."""
        raise NotImplementedError

    def observer(self) -> Hooks | None:
        """The observer that answers the model; a new one for each pass."""
        return hooks_of(self.equipment.config, None, self.changes, self.hooks)

    def unwatched(self) -> DecodeRequest:
        """The request once more, which nobody watches."""
        within = self.observer()
        return self.request(within, within)

    @property
    def values(self) -> tuple[Intervention, ...]:
        """The changes."""
        return tuple(change.value for change in self.changes)

    def notes(self, hypothesis: Hypothesis) -> tuple[str, ...]:
        """Sentences for the reader of an output."""
        notes, config, written = list(self.equipment.notes), self.equipment.config, len(hypothesis.token_ids)
        notes += self.unread
        length = self.trained_length_of(written)
        if config.trained_length is not None and length > config.trained_length:
            notes.append(self.too_long.format(length, config.trained_length))
        if hypothesis.token_ids[-1] != config.eos_id:
            notes.append(self.cut.format(written))
        elif not self.given and not self.equipment.wording.text(hypothesis.token_ids):
            notes.append(EMPTY)
        if not self.given and (unknown := hypothesis.token_ids.count(config.unk_id)):
            notes.append(UNKNOWN.format(f"{unknown} piece{'s' * (unknown > 1)}"))
        return (*notes, *(self.ended.format(each) for each in unreached(self.values, written)))

    def _material(self, value: Intervention, shape: RunShape) -> Tensor | None:
        """Values that a change puts in, if they must be computed first."""
        if isinstance(value, Ablate) and value.by == "mean":
            if self.equipment.means is None:
                raise InterventionError(self.no_means)
            return self.equipment.means.of(
                value.kind, value.layer, value.heads(self.equipment.config.n_heads)
            )
        if isinstance(value, Patch):
            there = held(self._again(value.from_run), value.place)
            return there[list(value.taken(len(there), shape.exact(value.place.side)))]
        return None

    def _again(self, run: OtherRun) -> AttentionTrace:
        """Everything that another run computes; without its output, the encoder."""
        for token in run.target or ():
            self.equipment.wording.token_id(token)
        return self.call_of(run).recorded(run.target, Capture(residual=True))

    @torch.inference_mode()
    def recorded(self, token_ids: Sequence[int] | None, capture: Capture) -> AttentionTrace:
        """The recording of one more pass with an output; without one, of the encoder."""
        config = self.equipment.config
        recorder = hooks_of(config, capture, self.changes, self.hooks)
        assert recorder is not None
        request = self.request(recorder, recorder)
        if token_ids is not None:
            self.record(request, token_ids, recorder)
        trace = trace_of(recorder, config, lambda *_: AuditReport(()), 0, self.changes)
        assert trace is not None
        return trace


class Given(NamedTuple):
    """An output that is given, not decoded."""

    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    unread: tuple[str, ...] = ()  # what the vocabulary has no piece for, in sentences


def given_text(
    wording: Wording, written: str | Sequence[int] | Sequence[str], start: int | None = None
) -> Given:
    """A whole output: a text, which then ends with ``</s>``, or all of its tokens as ids or pieces.

    Raises:
        InputError: The text is empty or too long.
        InterventionError: The vocabulary has no such token.
    """
    if isinstance(written, str):
        cut, end = wording.cut_target(written), wording.config.eos_id
        first = () if start is None else (start,)  # a piece that the text does not have, such as a language
        named = (*wording.pieces(first), *cut.pieces, *wording.pieces((end,)))
        return Given((*first, *cut.ids, end), named, cut.notes())
    ids = tuple(map(wording.token_id, written))
    pieces = zip(written, wording.pieces(ids), strict=True)
    return Given(ids, tuple(token if isinstance(token, str) else piece for token, piece in pieces))


class Run(Generic[Done]):
    """One run of a call, recorded or not."""

    def __init__(
        self,
        call: Call[Any, Done],  # what is asked for
        capture: bool | Capture,  # what to record
    ) -> None:
        self.call, self._wording = call, call.equipment.wording
        self.recorder: Hooks | None = None
        if capture is not False:
            parts = Capture() if capture is True else capture
            stream = parts.residual or any(value.needs_stream for value in call.values)
            self.recorder = hooks_of(
                call.equipment.config, Capture(parts.attention, stream), call.changes, call.hooks
            )

    @property
    def observer(self) -> Hooks | None:
        """Who watches."""
        return self.recorder or self.call.observer()

    def searched(self, search: Search, tree: bool) -> Iterator[DecodeStep | Done]:
        """Each step of a search (in a beam: of the best hypothesis so far), and finally the run."""
        call, observer = self.call, self.observer
        request = call.request(observer, call.observer() if search.has_beam else observer)
        steps: list[Step] = []
        decoding = search.decoding(request, call.target)
        while True:
            try:
                step = next(decoding)
            except StopIteration as stop:
                hypothesis: Hypothesis = stop.value[0]
                break
            steps.append(step)
            if step.log_probs[0] > -math.inf:  # a beam that has just ended has no open hypothesis
                yield self._step(step, step.token_ids[0], step.log_probs[0], step.parents[0])
        if search.has_beam and self.recorder is not None:
            call.record(request, hypothesis.token_ids, self.recorder)
        done = self.finished(hypothesis, self._path(steps, hypothesis), search.method)
        yield replace(done, tree=search.tree(call.unwatched, call.target, self._wording)) if tree else done

    def forced(self, given: Given) -> Done:
        """The run of a given output."""
        token_ids = given.ids
        distribution = self.call.distributions(token_ids, self.observer)
        log_probs = chosen(distribution, token_ids)
        hypothesis = Hypothesis(token_ids, log_probs, (0,) * len(token_ids), sum(log_probs))
        steps = [
            Step((token,), (log_prob,), (0,), (log_prob,), (best,), (best_values,), (False,))
            for token, log_prob, best, best_values in zip(
                token_ids, log_probs, *alternatives(distribution), strict=True
            )
        ]
        path = zip(self._path(steps, hypothesis), given.pieces, strict=True)
        found = self.finished(hypothesis, tuple(replace(step, token=own) for step, own in path), "forced")
        return replace(found, notes=tuple(dict.fromkeys((*found.notes, *given.unread))))

    def finished(self, hypothesis: Hypothesis, steps: tuple[DecodeStep, ...], method: str) -> Done:
        """The finished run with its trace."""
        call, wording, ids = self.call, self._wording, hypothesis.token_ids
        target, trace = tuple(step.token for step in steps), self.trace(hypothesis)
        return call.answer(
            source_text=call.source_text,
            text=wording.text(ids),
            source_tokens=call.source_tokens,
            decoder_input_tokens=(*wording.pieces((call.equipment.config.bos_id,)), *target[:-1]),
            target_tokens=target,
            log_probs=hypothesis.log_probs,
            steps=steps,
            method=method,
            model=call.equipment.name,
            config=call.equipment.config,
            notes=(*call.notes(hypothesis), *call.left_out(ids, trace)),
            attention=trace,
            interventions=call.values,
            distributions=partial(call.distributions, ids),  # of the call, which holds nothing recorded
        )

    def trace(
        self,
        hypothesis: Hypothesis,  # the output, with the log-probabilities of the decode
        # its log-probabilities by another pass; None for a new one, when the audit asks for it
        again: Callable[[], tuple[float, ...]] | None = None,
    ) -> AttentionTrace | None:
        """The recording; None if nothing was recorded."""
        if self.recorder is None:
            return None
        ids, proof = hypothesis.token_ids, LazyAudit(self.call, hypothesis, again)
        tokens, config = self.call.tokens(ids, self._wording.text(ids)), self.call.equipment.config
        return trace_of(self.recorder, config, proof, 0, self.call.changes, tokens, tuple(self.call.hooks))

    def _path(self, steps: Sequence[Step], hypothesis: Hypothesis) -> tuple[DecodeStep, ...]:
        """The steps of the best hypothesis: each token, with the alternatives of the row that it extends."""
        found = zip(steps, hypothesis.token_ids, hypothesis.log_probs, hypothesis.parents, strict=False)
        return tuple(self._step(*each) for each in found)

    def _step(self, step: Step, token: int, log_prob: float, parent: int) -> DecodeStep:
        """One token of one hypothesis, which extends row ``parent``."""
        ids, log_probs = step.alternative_ids[parent], step.alternative_log_probs[parent]
        best = named(self._wording, ids, log_probs, step.bars(parent))
        (piece,), forced = self._wording.pieces([token]), step.forced[parent]
        return DecodeStep(piece, token, log_prob, best, parent, forced)


class LazyAudit:
    """Audits a run; its output is passed through the model once more when the first audit asks for it."""

    def __init__(
        self,
        call: Call[Any, Any],  # what was asked for
        hypothesis: Hypothesis,  # the output, with the log-probabilities of the decode
        # log-probabilities of the output by another pass, if there has been one
        again: Callable[[], tuple[float, ...]] | None = None,
    ) -> None:
        self._model, self._log_probs, ids = call.equipment.model, hypothesis.log_probs, hypothesis.token_ids
        self._again = again or cache(lambda: chosen(call.distributions(ids), ids))
        self._tokens: tuple[Check, ...] = ()
        if call.values:
            written = list(zip(call.equipment.wording.pieces(ids), ids, strict=True))
            right = audited_tokens(call.values, call.source_tokens, written)
            self._tokens = (Check(TOKENS, float(not right), 0.0),)

    def __call__(self, trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
        """Runs the checks on the given sub-layers."""
        found = audit(trace, places, self._log_probs, self._again(), self._model)
        return found.joined(AuditReport(self._tokens))


def chosen(distribution: Tensor, token_ids: Sequence[int]) -> tuple[float, ...]:
    """The log-probability of each token, from (tokens, vocab_size) log-probabilities."""
    ids = torch.tensor(token_ids, device=distribution.device)[:, None]
    return tuple(distribution.gather(1, ids)[:, 0].tolist())


def named(
    wording: Wording, ids: Sequence[int], log_probs: Sequence[float], barred: Sequence[bool] = ()
) -> tuple[Alternative, ...]:
    """Tokens that could have come next, by id; ``barred`` says which of them the search rules forbade."""
    return tuple(map(Alternative, wording.pieces(ids), ids, log_probs, barred or (False,) * len(ids)))


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
    return trace.memory


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
