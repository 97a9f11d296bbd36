"""What a model is asked for, and the run that answers: searched step by step, or given and read in a pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import repeat, takewhile
from typing import Any, NamedTuple, TypedDict, Unpack

import torch
from torch import Tensor

from transformer import coverage
from transformer.audit import TOKENS, audit
from transformer.beam import BeamStep, Output, beam_search, search_tree
from transformer.config import Place
from transformer.decoding import (
    DecodingState,
    Hypothesis,
    Step,
    alternatives,
    constrained,
    decode,
)
from transformer.equations import audited_tokens
from transformer.hooks import HookFunction, Hooks, function_edits
from transformer.interventions import (
    Ablate,
    Choose,
    DropSource,
    EditSource,
    Intervention,
    InterventionError,
    Patch,
    Prefix,
    as_interventions,
    placed,
)
from transformer.interventions.edits import Change
from transformer.interventions.request import RunShape, check, edited
from transformer.model import LanguageModel
from transformer.run import Alternative, DecodeStep, Generation, Translation
from transformer.sampling import Sampling
from transformer.text_model import TextModel
from transformer.trace import AttentionTrace, Auditor, Capture, TokenTrace, hooks_of, trace_of
from transformer.view import AuditReport, Check

EMPTY = "The model wrote an empty text."
UNKNOWN = "The output has {} <unk>, where the model wrote something that its vocabulary cannot spell."


class Options(TypedDict, total=False):
    """How a text is searched for, what is changed, and what is recorded."""

    sample: Sampling | None  # draw tokens instead; only with ``beam_size=1``
    capture: bool | Capture  # True, False, or what to record
    hooks: Mapping[str, HookFunction]  # functions that change a value, by its name in ``transformer.hooks``
    interventions: Iterable[Intervention]  # what to change in the run, see ``transformer.interventions``
    length_penalty: float | None  # α of a beam's score; None for the model's rules, which say 1 for ours
    tree: bool  # whether ``Translation.tree`` keeps what the beam search looked at
    # k of the score Σ log p / ((k + length) / (k + 1))^α: 5 for the formula of Wu et al. (2016); None for the
    # model's rules, which say 0
    length_offset: int | None


class GivenOutput(NamedTuple):
    """An output that is given, not decoded."""

    ids: tuple[int, ...]  # all of its tokens, ``</s>`` included
    pieces: tuple[str, ...]
    unread: tuple[str, ...] = ()  # what the vocabulary has no piece for, in sentences


def given_output(
    reader: TextModel[Any], output: str | Sequence[int] | Sequence[str], start: int | None = None
) -> GivenOutput:
    """A whole output: a text, after the piece ``start`` if any, or all of its tokens as ids or pieces.

    InputError if it is empty or too long; InterventionError if the vocabulary has no such token.
    """
    if isinstance(output, str):
        cut, end = reader.cut_target(output), reader.config.eos_id
        first = () if start is None else (start,)  # a piece that the text does not have, such as a language
        pieces = (*reader.pieces(first), *cut.pieces, *reader.pieces((end,)))
        return GivenOutput((*first, *cut.ids, end), pieces, cut.notes())
    ids = tuple(map(reader.token_id, output))
    named = zip(output, reader.pieces(ids), strict=True)
    return GivenOutput(ids, tuple(token if isinstance(token, str) else piece for token, piece in named))


class Request:
    """What a model is asked for, checked; ``run`` answers it, and it can be put to the model again and again.

    A language model has no source; its prompt is the given beginning of the output. All passes compute where
    the model was when it was asked, even if it leaves its GPU meanwhile.

    Raises:
        InputError: The text is empty or too long.
        InterventionError: A change does not fit the model, the text or the output.
        ValueError: An option is out of range, options contradict each other, or the model lacks a place.
    """

    def __init__(
        self,
        reader: TextModel[Any],  # the model that is asked
        text: str = "",  # the source; for a language model the prompt
        beam_size: int | None = None,  # 1 for greedy search, more for beam search; None for the model's rules
        max_length: int | None = None,  # most tokens of the output, ``</s>`` included; None as the model says
        sample: Sampling | None = None,
        capture: bool | Capture = True,
        hooks: Mapping[str, HookFunction] | None = None,
        interventions: Iterable[Intervention] = (),
        length_penalty: float | None = None,
        tree: bool = False,
        length_offset: int | None = None,
        target: GivenOutput | None = None,  # the output, if it is given
    ) -> None:
        self.reader, self.model, self.config = reader, reader.model, reader.config
        self.own_notes = reader.notes
        self.values = as_interventions(interventions) if interventions else ()
        self.hooks, self.target = hooks or {}, target
        self.sample, self.keeps_tree = sample, tree
        self.beam_size = (reader.rules.beam_size if sample is None else 1) if beam_size is None else beam_size
        if sample is not None and self.beam_size != 1:
            raise ValueError("Sampling follows one hypothesis; use it with beam_size=1.")
        if sample is not None and tree:
            raise ValueError("Sampling builds no tree; leave out tree=True or the sample.")
        self.rules = reader.rules
        if length_penalty is not None or length_offset is not None:
            self.rules = self.rules.with_penalty(length_penalty, length_offset)
        self.source_text, self.prompt, self.unread, prompt = "", "", tuple[str, ...](), tuple[int, ...]()
        typed: list[tuple[int, str]] = []
        if isinstance(self.model, LanguageModel):
            self.prompt, prompt = reader.tokenizer.read(text), reader.ids(text)
        else:
            cut = reader.cut(text)
            self.source_text, self.unread = cut.read.text, cut.notes()
            end = self.config.eos_id
            typed = [*zip(cut.ids, cut.pieces, strict=True), (end, reader.source_pieces([end])[0])]
            if cut.start is not None:
                self.rules = replace(self.rules, forced_start=cut.start)
        source = len(typed) - sum(isinstance(each, DropSource) for each in self.values)
        self.given, given = len(prompt), None
        if target is None and (prompt or self.values):
            self._constrain(prompt)
        if target is not None:
            self.given = given = len(target.ids)
        shortest = target is not None and max_length is None
        self.limit = self.given if shortest else reader.limit(source or len(prompt), max_length)
        if self.hooks:
            function_edits(self.hooks, self.config)  # refuses what the model lacks
        shape = RunShape(self.config, len(typed), source, self.limit, given)
        read: Sequence[tuple[int, str]] = typed
        if self.values:
            check(self.values, shape)
            edits = {e: reader.source_id(e.token) for e in self.values if isinstance(e, EditSource)}
            names = {edit: (i, reader.source_pieces([i])[0]) for edit, i in edits.items()}
            read = edited(typed, self.values, names) if typed else ()
        self.source_ids, self.source_tokens = tuple(i for i, _ in read), tuple(piece for _, piece in read)
        self.changes = tuple(Change(each, self._material(each, shape)) for each in self.values)
        self.capture = Capture() if capture is True else capture or None
        if self.capture and any(each.part == "stream" for each in self.values):
            self.capture = replace(self.capture, residual=True)

    def run(self) -> Iterator[DecodeStep | Translation]:
        """Each step of the search (in a beam: of the best hypothesis so far), and finally the run; of a given
        output only the run."""
        if self.target is not None:
            yield self.replayed(self.target.ids)
            return
        hooks, in_beam = self._hooks(self.capture), self.beam_size > 1 or self.keeps_tree
        # in a beam hypotheses change rows, so that only the best one is recorded, after the search
        state = self._state(hooks, self._hooks() if in_beam else hooks)
        history: list[BeamStep] | None = [] if self.keeps_tree else None
        if in_beam or self.beam_size < 1:  # a beam refuses what is below 1
            decoding = beam_search(state, self.limit, self.beam_size, self.rules, history)
        else:
            choose = None if self.sample is None else self.sample.chooser()
            decoding = decode(state, self.limit, choose, self.rules)
        steps: list[Step] = []
        while True:
            try:
                step = next(decoding)
            except StopIteration as stop:
                hypothesis: Hypothesis = stop.value[0]
                break
            steps.append(step)
            if step.log_probs[0] > -math.inf:  # a beam that has just ended has no open hypothesis
                yield self._step(step, step.token_ids[0], step.log_probs[0], step.parents[0])
        if in_beam and self.capture is not None:
            state.forced_features(hypothesis.token_ids, hooks)
        path = zip(steps, hypothesis.token_ids, hypothesis.log_probs, hypothesis.parents, strict=False)
        method = "greedy" if self.beam_size == 1 else f"beam-{self.beam_size}"
        method = method if self.sample is None else f"sample-{self.sample.seed}"
        done = self._finished(hypothesis, tuple(self._step(*each) for each in path), method, hooks)
        if history is not None:
            parts = self.limit, self.config.eos_id, self.beam_size, self.rules, self.reader.pieces
            done = replace(done, tree=search_tree(history, *parts, self._greedy))
        yield done

    def replayed(
        self,
        token_ids: Sequence[int],  # the output
        log_probs: tuple[float, ...]
        | None = None,  # those of an earlier run, against which the audit holds it
        method: str = "forced",
    ) -> Translation:
        """The run of a given output, read in one pass (section 3.1, the masked decoder).

        Because of the causal mask, this pass computes the same values for every step as a search does.
        """
        hooks, ids = self._hooks(self.capture), tuple(token_ids)
        distribution = self.distributions(ids, hooks)
        now = _of_tokens(distribution, ids)
        then, pieces = log_probs or now, self.target.pieces if self.target else self.reader.pieces(ids)
        hypothesis = Hypothesis(ids, then, (0,) * len(ids), sum(then))
        best = zip(*alternatives(distribution), strict=True)
        others = (tuple(map(Alternative, self.reader.pieces(i), i, values)) for i, values in best)
        steps = tuple(map(DecodeStep, pieces, ids, then, others, repeat(0)))
        again = (lambda: now) if log_probs else None
        return self._finished(hypothesis, steps, method, hooks, again)

    @torch.inference_mode()
    def distributions(self, token_ids: Sequence[int], hooks: Hooks | None = None) -> Tensor:
        """(target, pieces) log-probabilities from a new pass without a cache; raises as ``numbers``."""
        hooks = hooks or self._hooks()
        return self._state(hooks, hooks).forced(token_ids, hooks)

    @torch.inference_mode()
    def recorded(self, token_ids: Sequence[int], capture: Capture) -> AttentionTrace:
        """The recording of one more pass with an output; without one, of the encoder."""
        hooks = self._hooks(capture)
        assert hooks is not None
        state = self._state(hooks, hooks)
        if token_ids:
            state.forced_features(token_ids, hooks)
        trace = trace_of(hooks, self.config, lambda *_: AuditReport(()), 0, self.changes)
        assert trace is not None
        return trace

    def _constrain(self, prompt: tuple[int, ...]) -> None:
        """Adds to the rules of the search, which writes the prompt first, what changes ask of the output."""
        first: list[Intervention] = []
        if isinstance(self.model, LanguageModel):
            for each in self.values:
                if isinstance(each, Prefix) or (isinstance(each, Choose) and each.step < len(prompt)):
                    raise InterventionError(
                        f"The prompt decides its own tokens, so this cannot be done: {each}."
                    )
            first = [Prefix(prompt)] if prompt else []
        changes = [*first, *self.values]
        self.rules = constrained(self.rules, changes, self.reader.token_id, self.config.eos_id)

    def _material(self, value: Intervention, shape: RunShape) -> Tensor | None:
        """Values that a change puts in, if they must be computed first."""
        if isinstance(value, Ablate) and value.by == "mean":
            if self.reader.means is None:
                raise InterventionError(self.reader.NO_MEANS)
            return self.reader.means.outputs[value.kind][value.layer, list(value.heads(self.config.n_heads))]
        if not isinstance(value, Patch):
            return None
        output = given_output(self.reader, value.target or (self.config.eos_id,))
        changes, most = value.interventions, self.config.max_positions
        other = Request(self.reader, value.text, 1, most, interventions=changes, target=output)
        there = other.recorded(value.target or (), Capture(residual=True)).tensors[
            placed(value.place)["hook"]
        ]
        there = there[value.heads(1)[0]] if value.part == "heads" else there
        return there[value.taken(len(there), shape.exact(value.side))]

    def _hooks(self, capture: Capture | None = None) -> Hooks | None:
        """Who looks at a pass: the request's changes and functions, and what records."""
        if capture is None and not self.changes and not self.hooks:
            return None
        return hooks_of(self.config, capture, self.changes, self.hooks)

    def _state(self, hooks: Hooks | None, step_hooks: Hooks | None) -> DecodingState:
        """The text, encoded and ready to be decoded."""
        device = self.model.embedding.weight.device
        source = torch.tensor([self.source_ids], device=device) if self.source_ids else None
        return DecodingState(self.model, source, hooks, step_hooks)

    def _greedy(self) -> Generator[str, None, Output]:
        """Greedy search for the same request, piece by piece, unrecorded."""
        decoding = decode(self._state(self._hooks(), self._hooks()), self.limit, rules=self.rules)
        while True:
            try:
                yield self.reader.pieces(next(decoding).token_ids)[0]
            except StopIteration as stop:
                ids, log_probs = stop.value[0].token_ids, stop.value[0].log_probs
                return Output(
                    self.reader.pieces(ids), ids, log_probs, self.rules.score(sum(log_probs), len(ids))
                )

    def _step(self, step: Step, token: int, log_prob: float, parent: int) -> DecodeStep:
        """One token of one hypothesis, which extends row ``parent``, with what else could have come next."""
        ids, values = step.alternative_ids[parent], step.alternative_log_probs[parent]
        best = tuple(map(Alternative, self.reader.pieces(ids), ids, values, step.excluded[parent]))
        return DecodeStep(self.reader.pieces([token])[0], token, log_prob, best, parent, step.forced[parent])

    def _finished(
        self,
        hypothesis: Hypothesis,
        steps: tuple[DecodeStep, ...],
        method: str,
        hooks: Hooks | None,  # who looked
        again: Callable[[], tuple[float, ...]] | None = None,  # its log-probabilities by another pass
    ) -> Translation:
        """The finished run with its trace."""
        ids, target, reader = hypothesis.token_ids, tuple(step.token for step in steps), self.reader
        text, read = reader.text(ids), (*reader.pieces((self.config.bos_id,)), *target[:-1])
        trace = None
        if hooks is not None and self.capture is not None:
            tokens = {
                "decoder": TokenTrace((self.config.bos_id, *ids[:-1]), read),
                "written": TokenTrace(ids, target, text),
            }
            if self.source_ids:
                tokens["encoder"] = TokenTrace(self.source_ids, self.source_tokens, self.source_text)
            auditor, functions = self._auditor(hypothesis, again), tuple(self.hooks)
            trace = trace_of(hooks, self.config, auditor, 0, self.changes, tokens, functions)
        kind: Callable[..., Translation] = Translation
        if isinstance(self.model, LanguageModel):
            kind = partial(Generation, prompt=text if self.target else self.prompt, given=self.given)
        return kind(
            source_text=self.source_text,
            text=text,
            source_tokens=self.source_tokens,
            decoder_input_tokens=read,
            target_tokens=target,
            log_probs=hypothesis.log_probs,
            steps=steps,
            method=method,
            model=reader.name,
            config=self.config,
            notes=tuple(dict.fromkeys(self._notes(ids, text, trace))),
            attention=trace,
            interventions=self.values,
            distributions=partial(self.distributions, ids),  # of the request, which holds nothing recorded
        )

    def _auditor(self, hypothesis: Hypothesis, again: Callable[[], tuple[float, ...]] | None) -> Auditor:
        """Audits a run, whose output passes through the model once more when the first audit asks for it."""
        ids = hypothesis.token_ids
        other_pass = again or cache(lambda: _of_tokens(self.distributions(ids), ids))

        def audited(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
            report = audit(trace, places, hypothesis.log_probs, other_pass(), self.model)
            if not self.values:
                return report
            written = list(zip(self.reader.pieces(ids), ids, strict=True))
            right = audited_tokens(self.values, self.source_tokens, written)
            return report.joined(AuditReport((Check(TOKENS, float(not right), 0.0),)))

        return audited

    def _notes(self, ids: tuple[int, ...], text: str, trace: AttentionTrace | None) -> Iterator[str]:
        """Sentences for the reader of an output."""
        config, reader = self.config, self.reader
        yield from (*self.own_notes, *self.unread)
        length = len(self.source_ids) or len(ids)
        if config.trained_length is not None and length > config.trained_length:
            yield reader.TOO_LONG.format(length, config.trained_length)
        if ids[-1] != config.eos_id:
            yield reader.CUT.format(len(ids))
        elif self.target is None and not text:
            yield EMPTY
        if self.target is None and (unknown := ids.count(config.unk_id)):
            yield UNKNOWN.format(f"{unknown} piece{'s' * (unknown > 1)}")
        for each in self.values:
            rows = _decoder_rows(each)
            if rows and min(rows) >= len(ids):
                yield reader.ENDED.format(each)
        translates = self.source_ids and getattr(config, "task", "translate") == "translate"
        if translates and ids[-1] == config.eos_id and self._leaves_out(ids, trace):
            yield coverage.NOTE
        if self.target is not None:
            yield from self.target.unread

    def _leaves_out(self, ids: tuple[int, ...], trace: AttentionTrace | None) -> bool:
        """Whether an output covers much less than its source, by its length and by what attention reads."""
        prompts: tuple[str, ...] = getattr(self.config, "prompt_texts", ())
        prompt = next(filter(self.source_text.startswith, prompts), "")
        languages = takewhile(self.config.language_pieces.__contains__, self.source_tokens)
        first = len(self.reader.cut(prompt).ids) if prompt else len(list(languages))  # what says what to do
        n_read, n_written = len(self.source_ids) - 1 - first, len(ids) - 1
        usual = coverage.SHORT * n_read <= n_written <= coverage.LONG * n_read

        def unread() -> float | None:
            if trace is None and (usual or self.hooks):  # one more pass only where the length asks for it
                return None
            return coverage.unread(trace or self.recorded(ids, Capture()), first, first + n_read)

        return coverage.leaves_out(n_read, n_written, unread)


def answer(
    reader: TextModel[Any],
    text: str = "",
    beam_size: int | None = None,
    max_length: int | None = None,
    target: GivenOutput | None = None,
    **options: Unpack[Options],
) -> Iterator[DecodeStep | Translation]:
    """``Request.run``, once more on the CPU if the GPU has no memory left; raises as ``Request``."""
    if options.get("interventions"):
        options["interventions"] = as_interventions(options["interventions"])
    parts = reader, text, beam_size, max_length
    return reader.answered(lambda: Request(*parts, **options, target=target).run())


def _of_tokens(distribution: Tensor, token_ids: Sequence[int]) -> tuple[float, ...]:
    """The log-probability of each token, from (tokens, vocab_size) log-probabilities."""
    ids = torch.tensor(token_ids, device=distribution.device)[:, None]
    return tuple(distribution.gather(1, ids)[:, 0].tolist())


def _decoder_rows(value: Intervention) -> tuple[int, ...]:
    """The rows of the decoder that a change names; none if it acts on all."""
    if isinstance(value, Patch) and value.side == "decoder":
        return tuple(here for here, _ in value.positions or ())
    if getattr(value, "kind", "encoder") == "encoder":
        return ()
    query = getattr(value, "query", None)
    return (query,) if query is not None else getattr(value, "rows", None) or ()
