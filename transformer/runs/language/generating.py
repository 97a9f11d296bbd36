"""One call of a text generator: the changes checked, the recording, and its audit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from transformer.decode.request import Continuation, numbers
from transformer.decode.steps import Hypothesis
from transformer.interventions import Ablate, Intervention, InterventionError, OtherRun, Patch, Setting
from transformer.interventions.acting import Change, Changes
from transformer.interventions.checking import check
from transformer.model.language_model import LanguageModel
from transformer.model.watching.hooks import Hook, HookCarrier, check_places
from transformer.model.watching.observer import UNWATCHED, Observer
from transformer.runs.language.generation import Generation
from transformer.runs.prepared import held, unreached
from transformer.runs.translating import Proof
from transformer.runs.translation import DecodeStep
from transformer.runs.wording import Wording
from transformer.trace.recorder import Capture, Recorder
from transformer.trace.records import AttentionTrace
from transformer.trace.report import AuditReport


@dataclass(frozen=True, eq=False)
class Request:
    """The request of a call, checked."""

    model: LanguageModel  # the network
    wording: Wording  # its vocabulary
    name: str  # its name
    changes: tuple[Change, ...]  # the changes, with what they put in
    hooks: tuple[Hook, ...]  # functions of Python that act in attention

    def within(self) -> Observer:
        """The observer that answers the model; a new one for each pass."""
        if self.changes:
            return Changes(self.changes, self.model.config, self.hooks)
        return HookCarrier(self.hooks) if self.hooks else UNWATCHED

    def start(self, observer: Observer) -> Continuation:
        """A text that is still empty."""
        first = torch.tensor([[self.model.config.bos_id]], device=self.model.embedding.weight.device)
        return Continuation(self.model, first, observer)

    @torch.inference_mode()
    def distributions(self, token_ids: Sequence[int], observer: Observer | None = None) -> Tensor:
        """(tokens, vocab_size) log-probabilities of a whole text, in one pass without a cache.

        Raises:
            OverflowedError: The model's numbers overflow.
        """
        model = self.model
        ids = torch.tensor([[model.config.bos_id, *token_ids[:-1]]], device=model.embedding.weight.device)
        features = model.features(ids, observer=observer or self.within())[0]
        return numbers(model.logits(features).float().log_softmax(-1))


def prepare(
    model: LanguageModel,  # the network
    wording: Wording,  # its vocabulary
    name: str,  # its name
    values: Sequence[Intervention],  # the changes
    hooks: tuple[Hook, ...],  # functions of Python that act in attention
    most: int,  # most tokens of the whole text
    given: int | None,  # number of tokens of a given text; None if it is to be continued
) -> Request:
    """Checks a request and computes what its changes put in.

    Raises:
        InterventionError: A change does not fit the model or the text.
        ValueError: A hook acts on no attention of the model.
    """
    check_places(hooks, model.config)
    setting = Setting(model.config, 0, 0, most, given)
    check(values, setting)
    changes = tuple(Change(each, _material(model, wording, each, setting)) for each in values)
    return Request(model, wording, name, changes, hooks)


def _material(model: LanguageModel, wording: Wording, value: Intervention, setting: Setting) -> Tensor | None:
    """Values that a change puts in, if they must be computed first."""
    if isinstance(value, Ablate) and value.by == "mean":
        raise InterventionError("A language model has no mean outputs of its heads; ablate by zero.")
    if isinstance(value, Patch):
        there = held(_run_again(model, wording, value.from_run), value.place)
        return there[list(value.taken(len(there), setting.whole("decoder")))]
    return None


def _run_again(model: LanguageModel, wording: Wording, other: OtherRun) -> AttentionTrace:
    """Everything that the model computes for another text, its target, with that run's own changes."""
    ids = tuple(wording.token_id(token) for token in other.target or ())
    request = prepare(model, wording, "", other.interventions, (), len(ids), len(ids))
    recorder = Recorder(Capture(residual=True), request.within(), request.changes)
    request.distributions(ids, recorder)
    trace = recorder.trace(lambda *_: AuditReport(()))
    assert trace is not None
    return trace


class Run:
    """One call of a text generator."""

    def __init__(
        self,
        request: Request,  # what is asked for
        capture: Capture | None,  # what to record; None for nothing
        prompt: str,  # the prompt
        given: int,  # number of its tokens
    ) -> None:
        self._request, self._prompt, self._given = request, prompt, given
        self._values = tuple(change.value for change in request.changes)
        self.recorder: Recorder | None = None
        if capture is not None:
            stream = capture.residual or any(value.needs_stream for value in self._values)
            self.recorder = Recorder(Capture(capture.attention, stream), request.within(), request.changes)

    @property
    def observer(self) -> Observer:
        """Who watches the steps."""
        return self.recorder or self._request.within()

    def start(self, *, record_steps: bool) -> Continuation:
        """A text that is still empty, watched by the recorder if there is one."""
        return self._request.start(self.observer if record_steps else self._request.within())

    def again(self) -> Continuation:
        """The same once more, which nobody watches."""
        return self._request.start(self._request.within())

    def reread(self, hypothesis: Hypothesis) -> None:
        """Records a finished text in one pass."""
        self._request.distributions(hypothesis.token_ids, self.observer)

    def generation(self, hypothesis: Hypothesis, steps: tuple[DecodeStep, ...], method: str) -> Generation:
        """The text with its trace."""
        request, wording = self._request, self._request.wording
        target = wording.pieces(hypothesis.token_ids)
        distributions: Callable[[], Tensor] = partial(request.distributions, hypothesis.token_ids)
        trace = None
        if self.recorder is not None:
            proof = Proof(request.model, wording, self._values, hypothesis, distributions)
            trace = self.recorder.trace(proof)
        return Generation(
            source_text="",
            text=wording.text(hypothesis.token_ids),
            source_tokens=(),
            decoder_input_tokens=(*wording.pieces((request.model.config.bos_id,)), *target[:-1]),
            target_tokens=target,
            log_probs=hypothesis.log_probs,
            steps=steps,
            method=method,
            model=request.name,
            config=request.model.config,
            notes=self._notes(hypothesis),
            attention=trace,
            interventions=self._values,
            distributions=distributions,
            prompt=self._prompt,
            given=self._given,
        )

    def _notes(self, hypothesis: Hypothesis) -> tuple[str, ...]:
        config, length = self._request.model.config, len(hypothesis.token_ids)
        notes = []
        if config.trained_length is not None and length > config.trained_length:
            notes.append(
                f"This text has {length:,} tokens: "
                f"longer than any row in this model's training ({config.trained_length:,})."
            )
        if hypothesis.token_ids[-1] != config.eos_id:
            notes.append(f"The text was cut at {length:,} tokens.")
        for each in unreached(self._values, length):
            notes.append(f"The text ended before this change could act: {each}.")
        return tuple(notes)
