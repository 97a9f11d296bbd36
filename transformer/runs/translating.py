"""One call of a translator: the text as ids, the recording, and its audit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor

from transformer.decode.replay import replay
from transformer.decode.request import TranslationRequest
from transformer.decode.steps import Hypothesis
from transformer.interventions import Intervention
from transformer.interventions.acting import Changes
from transformer.model.network import Network
from transformer.model.sites import Place
from transformer.model.watching.hooks import Hook, HookCarrier, check_places
from transformer.model.watching.observer import UNWATCHED, Observer
from transformer.runs.prepared import Equipment, Length, Prepared, prepare, unreached
from transformer.runs.translation import DecodeStep, Translation
from transformer.runs.wording import Wording
from transformer.trace.audit import audit
from transformer.trace.equations import TOKENS, audited_tokens
from transformer.trace.recorder import Capture, Recorder
from transformer.trace.records import AttentionTrace
from transformer.trace.report import AuditReport, Check


@dataclass(frozen=True, eq=False)
class Repeat:
    """A second pass of a finished output through the model, with the same changes."""

    equipment: Equipment  # the translator's
    ready: Prepared  # the request
    hooks: tuple[Hook, ...]  # functions of Python that act in attention

    def within(self) -> Observer:
        """The observer that answers the model; a new one for each pass."""
        if self.ready.changes:
            return Changes(self.ready.changes, self.equipment.config, self.hooks)
        return HookCarrier(self.hooks) if self.hooks else UNWATCHED

    def source(self) -> Tensor:
        """(1, source) ids."""
        return torch.tensor([self.ready.src_ids], device=self.equipment.device)

    def distributions(self, token_ids: Sequence[int]) -> Tensor:
        """(target, vocab_size) log-probabilities, from a new and uncached pass over source and output."""
        request = self.request()
        return replay(request.model, request.memory, token_ids, observer=request.step_observer)

    def request(self) -> TranslationRequest:
        """The request once more, which nobody watches."""
        within = self.within()
        return TranslationRequest(self.equipment.model, self.source(), within, within)


class Run:
    """One call of a translator.

    Raises:
        InputError: The text is empty or too long.
        InterventionError: A change does not fit the request.
        ValueError: A hook acts on no attention of the model.
    """

    def __init__(
        self,
        equipment: Equipment,  # the translator's
        text: str,  # the source
        capture: Capture | None,  # what to record; None for nothing
        hooks: tuple[Hook, ...],  # functions of Python that act in attention
        values: tuple[Intervention, ...],  # the changes
        length: Length,  # most tokens of the output
        given: int | None = None,  # number of tokens of a given output; None if it is to be decoded
    ) -> None:
        check_places(hooks, equipment.config)
        self._equipment, self._values = equipment, values
        self._ready = prepare(equipment, text, values, length, given)
        self._repeat = Repeat(equipment, self._ready, hooks)
        self.target = self._ready.target
        self.recorder: Recorder | None = None
        if capture is not None:
            stream = capture.residual or any(value.needs_stream for value in values)
            within = self._repeat.within()
            self.recorder = Recorder(Capture(capture.attention, stream), within, self._ready.changes)

    def request(self, *, record_steps: bool) -> TranslationRequest:
        """The request to decode, watched by the recorder if there is one."""
        observer = self.recorder or self._repeat.within()
        step_observer = observer if record_steps else self._repeat.within()
        return TranslationRequest(self._equipment.model, self._repeat.source(), observer, step_observer)

    @property
    def unwatched(self) -> Callable[[], TranslationRequest]:
        """Makes the same request once more, unwatched, and without holding on to what was recorded."""
        return self._repeat.request

    def translation(self, hypothesis: Hypothesis, steps: tuple[DecodeStep, ...], method: str) -> Translation:
        """The translation with its trace."""
        equipment, wording = self._equipment, self._equipment.wording
        target = wording.pieces(hypothesis.token_ids)
        start = wording.pieces((equipment.config.bos_id,))
        return Translation(
            source_text=self._ready.source_text,
            text=wording.text(hypothesis.token_ids),
            source_tokens=wording.source_pieces(self._ready.src_ids),
            decoder_input_tokens=(*start, *target[:-1]),
            target_tokens=target,
            log_probs=hypothesis.log_probs,
            steps=steps,
            method=method,
            model=equipment.name,
            config=equipment.config,
            notes=self._notes(hypothesis),
            attention=self.trace(hypothesis),
            interventions=self._values,
            distributions=partial(self._repeat.distributions, hypothesis.token_ids),
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
        equipment, repeat, ids = self._equipment, self._repeat, hypothesis.token_ids
        source = equipment.wording.source_pieces(self._ready.src_ids)
        found = partial(repeat.distributions, ids)
        proof = Proof(equipment.model, equipment.wording, self._values, hypothesis, found, source, again)
        return self.recorder.trace(proof)

    def _notes(self, hypothesis: Hypothesis) -> tuple[str, ...]:
        notes, config = list(self._equipment.notes), self._equipment.config
        length = len(self._ready.src_ids)
        if config.trained_length is not None and length > config.trained_length:
            notes.append(
                f"This text has {length:,} tokens: "
                f"longer than any text in this model's training ({config.trained_length:,})."
            )
        if hypothesis.token_ids[-1] != config.eos_id:
            notes.append(
                f"The translation was cut at {len(hypothesis.token_ids):,} tokens, so it is incomplete."
            )
        for each in unreached(self._values, len(hypothesis.token_ids)):
            notes.append(f"The output ended before this change could act: {each}.")
        return tuple(notes)


class Proof:
    """Audits a run; its output is passed through the model once more when the first audit asks for it."""

    def __init__(
        self,
        model: Network,  # the model that ran
        wording: Wording,  # its vocabulary
        values: Sequence[Intervention],  # what was changed
        hypothesis: Hypothesis,  # the output, with the log-probabilities of the decode
        # makes (tokens, vocab_size) log-probabilities of the output by another pass
        distributions: Callable[[], Tensor],
        source: tuple[str, ...] = (),  # the pieces of the source
        # log-probabilities of the output by another pass, if there has been one
        again: Callable[[], tuple[float, ...]] | None = None,
    ) -> None:
        self._model, self._log_probs = model, hypothesis.log_probs
        self._again = again or cache(lambda: chosen(distributions(), hypothesis.token_ids))
        self._tokens: tuple[Check, ...] = ()
        if values:
            ids = hypothesis.token_ids
            written = list(zip(wording.pieces(ids), ids, strict=True))
            right = audited_tokens(values, source, written)
            self._tokens = (Check(TOKENS, float(not right), 0.0),)

    def __call__(self, trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
        """Runs the checks on the given sub-layers."""
        found = audit(trace, places, self._log_probs, self._again(), self._model)
        return AuditReport((*found.checks, *self._tokens), found.changes)


def chosen(distribution: Tensor, token_ids: Sequence[int]) -> tuple[float, ...]:
    """The log-probability of each token, from (tokens, vocab_size) log-probabilities."""
    ids = torch.tensor(token_ids, device=distribution.device)[:, None]
    return tuple(distribution.gather(1, ids)[:, 0].tolist())
