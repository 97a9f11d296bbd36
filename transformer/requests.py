"""What a model is asked for, and the run that answers: searched step by step, or given and read in a pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import repeat, takewhile
from typing import TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor

from transformer import interventions as do
from transformer.audit import TOKENS, audit
from transformer.beam import beam_search, search_tree
from transformer.config import AttentionKind, Place
from transformer.decoding import (
    DecodingState,
    Hypothesis,
    Limit,
    Node,
    Step,
    candidates_of,
    constrained,
    decode,
)
from transformer.equations import audited_tokens
from transformer.hooks import Capture, HookFunction, Hooks, function_edits
from transformer.interventions.edits import Change
from transformer.interventions.request import RunShape, check
from transformer.run import Alternative, DecodeStep, Translation
from transformer.sampling import Sampling
from transformer.text.kinds import is_whole
from transformer.text.tokenizer import TokenizedText
from transformer.text_model import TextModel
from transformer.trace import AttentionTrace, TokenTrace, hooks_of, trace_of
from transformer.view import AuditReport, Check

NO_MEANS = "This model has no mean outputs of its heads"
PROMPTED = "The prompt decides its own tokens, so this cannot be done"
EMPTY = "The model wrote an empty text."
UNKNOWN = "The output has {} <unk>, where the model wrote something that its vocabulary cannot spell."
TOO_LONG = "This text has {:,} tokens: longer than any text in this model's training ({:,})."
CUT = "The output was cut at {:,} tokens, so it is incomplete."
ENDED = "The output ended before this change could act: {}."
LEFT_OUT = "The translation may leave out the end."
# Whether a translation covers its source is seen in its length, and in what its cross-attention reads of it;
# `benchmarks/coverage.py` measures the limits. Another pair of languages may need fewer tokens than it reads,
# so that length alone says something only when it is far too short; what no head reads, for any model.
FEWEST = 6
"""Source tokens from which on anything is said."""
SHORT, FAR_TOO_SHORT, LONG = 0.8, 0.5, 1.4
"""Target tokens per source token: fewer than usual, too few whatever is read, and so many as in a loop."""
READ = 0.15
"""A source token is read if any head of the last layers gives it this weight at any step."""
LAYERS = 2
SOME, MANY = 0.1, 0.2
"""Share of unread source tokens that is named in a short translation, and in any."""


class Looking(TypedDict, total=False):
    """What is changed in a run, and what is recorded."""

    capture: bool | Capture  # True, False, or what to record
    hooks: Mapping[str, HookFunction]  # functions that change a value, by its name in ``transformer.hooks``
    # what to change in the run, see ``transformer.interventions``; in a forced pass, what chooses or forbids
    # tokens must agree with the output
    interventions: Iterable[do.Intervention]


class Options(Looking, total=False):
    """How a text is searched for, too. Steps and rows of a text with a prompt count from its start."""

    # 1 for greedy search, more for beam search (score Σ log p / length^α); None for the model's rules, which
    # say 1 for the models of this package
    beam_size: int | None
    # most tokens of the output, prompt and ``</s>`` included; None for the limit in the model's rules, or if
    # they set none, 1.5 × source tokens + 10, and 60 for a language model
    max_length: int | None
    sample: Sampling | None  # draw tokens instead; only with ``beam_size=1``
    length_penalty: float | None  # α of a beam's score; None for the model's rules, which say 1 for ours
    # k of the score Σ log p / ((k + length) / (k + 1))^α: 5 for the formula of Wu et al. (2016); None for the
    # model's rules, which say 0
    length_offset: int | None
    tree: bool  # whether ``Translation.tree`` keeps what the beam search looked at


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
        reader: TextModel,  # the model that is asked
        text: str = "",  # the source; for a language model the prompt
        output: TokenizedText | None = None,  # the output, if it is given
        **options: Unpack[Options],
    ) -> None:
        if wrong := options.keys() - (Options if output is None else Looking).__annotations__:
            raise TypeError(f"There is no option {min(wrong)} here.")
        if not isinstance(text, str):
            raise TypeError(f"The text is {type(text).__name__}; it must be a string.")
        self.reader, self.model, self.config = reader, reader.model, reader.config
        self.own_notes, self.output, self.rules = reader.notes, output, reader.rules
        self.values, self.hooks = tuple(options.get("interventions", ())), options.get("hooks") or {}

        # how it is searched for
        self.sample, self.keeps_tree = options.get("sample"), options.get("tree", False)
        size = options.get("beam_size")
        usual = self.rules.beam_size if self.sample is None else 1
        self.beam_size = usual if size is None else size
        if not is_whole(self.beam_size, 1, 64):
            raise ValueError(f"beam_size is {size!r:.80}; it must be a whole number from 1 to 64.")
        if self.sample is not None and self.beam_size != 1:
            raise ValueError("Sampling follows one hypothesis; use it with beam_size=1.")
        if self.sample is not None and self.keeps_tree:
            raise ValueError("Sampling builds no tree; leave out tree=True or the sample.")

        # what is read, and how much may be written
        cut = reader.cut(text)
        typed, prompt = list[tuple[int, str]](), cut.ids if reader.continues else ()
        if not reader.continues:
            end = self.config.eos_id
            typed = [*zip(cut.ids, cut.pieces, strict=True), (end, reader.pieces([end], "source")[0])]
        self.text, self.unread = cut.clean.text, cut.notes()
        source = len(typed) - sum(isinstance(each, do.DropSource) for each in self.values)
        self.given = self.limit = len(prompt if output is None else output.ids)
        if output is None:
            self.limit = reader.limit(source or len(prompt), options.get("max_length"))
        penalties = options.get("length_penalty"), options.get("length_offset")
        if penalties != (None, None):
            self.rules = self.rules.with_penalty(*penalties)
        if cut.start is not None:
            self.rules = replace(self.rules, forced_start=cut.start)
        if output is None and (prompt or self.values):
            self._constrain(prompt)

        # what is changed and recorded
        if self.hooks:
            function_edits(self.hooks, self.config)  # refuses what the model lacks
        shape = RunShape(self.config, len(typed), source, self.limit, None if output is None else self.given)
        if self.values:
            check(self.values, shape)
            for each in self.values:
                if isinstance(each, do.EditSource):
                    put = reader.token_id(each.token, "source")
                    typed[each.position] = put, reader.pieces([put], "source")[0]
            dropped = {each.position for each in self.values if isinstance(each, do.DropSource)}
            if typed and len(dropped) == len(typed):
                raise do.InterventionError("No source token is left; keep one.")
            typed = [token for at, token in enumerate(typed) if at not in dropped]
        self.source_ids, self.source_tokens = tuple(i for i, _ in typed), tuple(piece for _, piece in typed)
        self.changes = tuple(Change(each, self._material(each, shape)) for each in self.values)
        capture = options.get("capture", True)
        if not isinstance(capture, bool | Capture):
            raise TypeError(f"capture is {capture!r:.40}; it must be True, False or a Capture.")
        self.capture = Capture() if capture is True else capture or None
        if self.capture and any(each.part == "stream" for each in self.values):
            self.capture = replace(self.capture, residual=True)

    def run(self) -> Iterator[DecodeStep | Translation]:
        """Each step of the search (in a beam: of the best hypothesis so far), and finally the run; of a given
        output only the run."""
        if self.output is not None:
            yield self.replayed(self.output.ids)
            return
        in_beam = self.beam_size != 1 or self.keeps_tree
        state, hooks = self._begin(self.capture, in_beam)
        history: list[Node] | None = [] if self.keeps_tree else None
        steps, results = list[Step](), list[Hypothesis]()
        for step in self.search(state, self.limit, results, history):
            steps.append(step)
            newest = step.nodes[0]
            if newest.log_prob > -math.inf:  # a beam that has just ended has no open hypothesis
                yield self._step(step, newest.token_id, newest.log_prob, newest.parent_row)
        hypothesis = results[0]
        if in_beam and self.capture is not None:
            state.forced_features(hypothesis.token_ids, hooks)
        path = zip(steps, hypothesis.token_ids, hypothesis.log_probs, hypothesis.parents, strict=False)
        method = "greedy" if self.beam_size == 1 else f"beam-{self.beam_size}"
        method = method if self.sample is None else f"sample-{self.sample.seed}"
        done = self._finished(hypothesis, tuple(self._step(*each) for each in path), method, hooks)
        if history is not None:
            parts = self.beam_size, self.rules, self.reader.pieces, self._greedy
            done = replace(done, tree=search_tree(history, *parts))
        yield done

    def search(
        self,
        state: DecodingState,  # of one text, or of a batch of texts with rules and options like this one's
        limit: Limit,
        results: list[Hypothesis],  # gets one for each text in the end
        history: list[Node] | None = None,  # gets all that a beam looks at
    ) -> Iterator[Step]:
        """The steps of the search."""
        if self.beam_size != 1 or history is not None:
            results += yield from beam_search(state, limit, self.beam_size, self.rules, history)
        else:
            choose = None if self.sample is None else self.sample.chooser()
            results += yield from decode(state, limit, choose, self.rules)

    def replayed(
        self,
        ids: tuple[int, ...],  # the output
        log_probs: tuple[float, ...] | None = None,  # those of an earlier run, which the audit compares
        method: str = "forced",
    ) -> Translation:
        """The run of a given output, read in one pass (section 3.1, the masked decoder).

        Because of the causal mask, this pass computes the same values for every step as a search does.
        """
        return self.read_off(*self._passed(ids, self.capture), ids, log_probs, method)

    def read_off(
        self,
        distribution: Tensor,  # (target, pieces) log-probabilities from a pass with the output
        hooks: Hooks | None,  # who looked at the pass
        ids: tuple[int, ...],
        log_probs: tuple[float, ...] | None,  # as in ``replayed``
        method: str,
        row: int = 0,  # of a batch
    ) -> Translation:
        """The run of an output that has passed through the model."""
        now, pieces = _of_tokens(distribution, ids), self.reader.pieces
        best, then = candidates_of(distribution, distribution, distribution), log_probs or now
        others = (tuple(map(Alternative, pieces(each.ids), each.ids, each.log_probs)) for each in best)
        names = self.output.pieces if self.output else pieces(ids)
        steps = tuple(map(DecodeStep, names, ids, then, others, repeat(0)))
        hypothesis = Hypothesis(ids, then, (0,) * len(ids), sum(then))
        return self._finished(hypothesis, steps, method, hooks, (lambda: now) if log_probs else None, row)

    @torch.inference_mode()
    def _passed(self, ids: tuple[int, ...], capture: Capture | None = None) -> tuple[Tensor, Hooks | None]:
        """(target, pieces) log-probabilities from a new pass without a cache, and who looked at it."""
        state, hooks = self._begin(capture)
        return state.forced(ids, hooks), hooks

    def _constrain(self, prompt: tuple[int, ...]) -> None:
        """Adds to the rules of the search, which writes the prompt first, what changes ask of the output."""
        for each in self.values if self.reader.continues else ():
            if isinstance(each, do.Prefix) or (isinstance(each, do.Choose) and each.step < len(prompt)):
                raise do.InterventionError(f"{PROMPTED}: {each}.")
        changes = [*([do.Prefix(prompt)] if prompt else []), *self.values]
        self.rules = constrained(self.rules, changes, self.reader.token_id, self.config.eos_id)

    def _material(self, value: do.Intervention, shape: RunShape) -> Tensor | None:
        """Values that a change puts in, if they must be computed first."""
        if isinstance(value, do.Ablate) and value.by == "mean":
            if self.reader.means is None:
                where = "" if self.reader.continues else "measure them with `python -m explorer survey`, or "
                raise do.InterventionError(f"{NO_MEANS}: {where}ablate by zero.")
            return self.reader.means.outputs[value.kind][value.layer, list(value.heads(self.config.n_heads))]
        if not isinstance(value, do.Patch):
            return None
        output = self.reader.output(value.target or (self.config.eos_id,))
        record: Looking = {"capture": Capture(residual=True), "interventions": value.interventions}
        other = Request(self.reader, value.text, output, **record).replayed(output.ids)
        there = other.trace.tensors[value.hook]
        there = there[value.heads(1)[0]] if value.part == "heads" else there
        return there[value.taken(len(there), shape.exact(value.side))]

    def _begin(
        self, capture: Capture | None = None, in_beam: bool = False
    ) -> tuple[DecodingState, Hooks | None]:
        """The text, encoded and ready to be decoded; and who looks: changes, functions, what records.

        In a beam hypotheses change rows, so that only the best one is recorded, after the search.
        """
        hooks = steps = None
        if capture is not None or self.changes or self.hooks:
            hooks = steps = hooks_of(self.config, capture, self.changes, self.hooks)
        if in_beam and hooks is not None:
            steps = hooks_of(self.config, None, self.changes, self.hooks)
        device = self.model.embedding.weight.device
        source = torch.tensor([self.source_ids], device=device) if self.source_ids else None
        return DecodingState(self.model, source, hooks, steps), hooks

    def _greedy(self) -> Generator[str, None, Hypothesis]:
        """Greedy search for the same request, piece by piece, unrecorded."""
        greedy, results = copy(self), list[Hypothesis]()
        greedy.beam_size = 1
        for step in greedy.search(self._begin()[0], self.limit, results):
            yield self.reader.pieces([step.nodes[0].token_id])[0]
        (done,) = results
        score = self.rules.score(done.total, len(done.token_ids))
        return replace(done, score=score, tokens=self.reader.pieces(done.token_ids))

    def _step(self, step: Step, token: int, log_prob: float, parent: int) -> DecodeStep:
        """One token of one hypothesis, which extends row ``parent``, with what else could have come next."""
        ids, values, excluded, forced = step.candidates[parent]
        best = tuple(map(Alternative, self.reader.pieces(ids), ids, values, excluded))
        return DecodeStep(self.reader.pieces([token])[0], token, log_prob, best, parent, forced)

    def _finished(
        self,
        hypothesis: Hypothesis,
        steps: tuple[DecodeStep, ...],
        method: str,
        hooks: Hooks | None,  # who looked
        again: Callable[[], tuple[float, ...]] | None = None,  # its log-probabilities by another pass
        row: int = 0,
    ) -> Translation:
        """The finished run with its trace, whose first audit asks for that other pass."""
        ids, config, reader = hypothesis.token_ids, self.config, self.reader
        target, text = tuple(step.token for step in steps), reader.text(ids)
        read = (*reader.pieces((config.bos_id,)), *target[:-1])
        other_pass = again or cache(lambda: _of_tokens(self._passed(ids)[0], ids))

        def audited(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
            report = audit(trace, places, hypothesis.log_probs, other_pass(), self.model)
            if not self.values:
                return report
            written = list(zip(reader.pieces(ids), ids, strict=True))
            right = audited_tokens(self.values, self.source_tokens, written)
            return report.joined(AuditReport((Check(TOKENS, float(not right), 0.0),)))

        trace = None
        if hooks is not None and self.capture is not None:
            tokens = {
                "decoder": TokenTrace((config.bos_id, *ids[:-1]), read),
                "written": TokenTrace(ids, target, text),
            }
            if self.source_ids:
                tokens["encoder"] = TokenTrace(self.source_ids, self.source_tokens, self.text)
            trace = trace_of(hooks, config, audited, row, self.changes, tokens, tuple(self.hooks))
        return Translation(
            source_text="" if reader.continues else self.text,
            text=text,
            source_tokens=self.source_tokens,
            decoder_input_tokens=read,
            target_tokens=target,
            log_probs=hypothesis.log_probs,
            steps=steps,
            method=method,
            model=reader.name,
            config=config,
            notes=self._notes(ids, text, trace),
            attention=trace,
            interventions=self.values,
            functions=tuple(self.hooks),
            distributions=lambda: self._passed(ids)[0],  # of the request, which holds nothing recorded
            prompt=None if not reader.continues else self.text if self.output is None else text,
            given=self.given,
        )

    def _notes(
        self,
        ids: tuple[int, ...],  # the output
        text: str,  # its text
        trace: AttentionTrace | None,  # what was recorded of it
    ) -> tuple[str, ...]:
        """Sentences for the reader of an output, each once."""
        config, given, end = self.config, self.output, ids[-1] == self.config.eos_id
        length, trained = len(self.source_ids) or len(ids), config.trained_length or 0
        unknown = ids.count(config.unk_id)
        table = {
            TOO_LONG.format(length, trained): 0 < trained < length,
            CUT.format(len(ids)): not end,
            EMPTY: end and given is None and not text,
            UNKNOWN.format(f"{unknown} piece{'s' * (unknown > 1)}"): given is None and unknown > 0,
            **{ENDED.format(each): min(_decoder_rows(each), default=-1) >= len(ids) for each in self.values},
            LEFT_OUT: end and self._leaves_out(ids, trace),
        }
        of_model = (*self.own_notes, *self.unread, *(said for said, holds in table.items() if holds))
        return tuple(dict.fromkeys((*of_model, *(given.notes() if given else ()))))

    def _leaves_out(self, ids: tuple[int, ...], trace: AttentionTrace | None) -> bool:
        config, read = self.config, self.source_ids
        if not read or getattr(config, "task", "translate") != "translate":
            return False
        prompt = next(filter(self.text.startswith, getattr(config, "prompt_texts", ())), "")
        languages = takewhile(config.language_pieces.__contains__, self.source_tokens)
        first = len(self.reader.ids(prompt)) if prompt else len(list(languages))  # says what to do

        def unread(usual: bool) -> float | None:
            if trace is None and (usual or self.hooks):  # one more pass only where the length asks for it
                return None
            there = trace
            if there is None:
                again = copy(self)
                again.capture = Capture()
                there = again.replayed(ids).trace
            layers = range(len(there.layers[AttentionKind.CROSS]))[-LAYERS:]
            most = [there.weights(AttentionKind.CROSS, layer).max(axis=(0, 1)) for layer in layers]
            return float((np.max(most, axis=0)[first : len(read) - 1] < READ).mean())

        return leaves_out(len(read) - 1 - first, len(ids) - 1, unread)


def _of_tokens(distribution: Tensor, ids: Sequence[int]) -> tuple[float, ...]:
    """The log-probability of each token, from (tokens, vocab_size) log-probabilities."""
    places = torch.tensor(ids, device=distribution.device)[:, None]
    return tuple(distribution.gather(1, places)[:, 0].tolist())


def _decoder_rows(value: do.Intervention) -> tuple[int, ...]:
    """The rows of the decoder that a change names; none if it acts on all."""
    if isinstance(value, do.Patch) and value.side == "decoder":
        return tuple(here for here, _ in value.positions or ())
    if getattr(value, "kind", "encoder") == "encoder":
        return ()
    query = getattr(value, "query", None)
    return (query,) if query is not None else getattr(value, "rows", None) or ()


def leaves_out(
    read: int,  # source tokens, without special ones
    written: int,  # target tokens, without special ones
    unread: Callable[[bool], float | None],  # whether the length is usual → the share of the source that is
    # not read; None if nobody can say
) -> bool:
    """Whether a translation covers much less than its source."""
    length = written / max(read, 1)
    if read < FEWEST or length < FAR_TOO_SHORT:
        return read >= FEWEST
    share = unread(SHORT <= length <= LONG)
    return share is not None and share >= (SOME if length < SHORT else MANY)
