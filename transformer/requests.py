"""What a model is asked for, and the run that answers: searched step by step, or given and read in a pass."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import repeat, takewhile
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor

from transformer import interventions as do
from transformer.audit import TOKENS, audit
from transformer.beam import beam_search, search_tree
from transformer.config import AttentionKind, ModelConfig, Place
from transformer.decoding import (
    Decoding,
    DecodingState,
    Node,
    SearchRules,
    candidates_of,
    constrained,
    decode,
    pad,
)
from transformer.equations import audited_tokens
from transformer.hooks import Capture, HookFunction, Hooks, function_edits
from transformer.interventions.edits import Change
from transformer.interventions.request import RunShape, check
from transformer.run import Alternative, DecodeStep, Translation
from transformer.sampling import Sampling
from transformer.text.tokenizer import TokenizedText
from transformer.trace import AttentionTrace, TokenTrace, hooks_of, trace_of
from transformer.view import AuditReport, Check

LEFT_OUT = "The translation may leave out the end."
# Whether a translation covers its source is seen in its length, and in what its cross-attention reads of it;
# `python -m benchmarks left-out` measures the limits. Another pair of languages may need fewer tokens than it
# reads, so that length alone says something only when it is far too short; what no head reads, for any model.
FEWEST = 6
"""Source tokens from which on anything is said."""
SHORT, FAR_TOO_SHORT, LONG = 0.8, 0.5, 1.4
"""Target tokens per source token: fewer than usual, too few whatever is read, and so many as in a loop."""
LENGTH = 60
"""Most tokens of a language model's text if the caller gives no number."""
READ, LAYERS = 0.15, 2
"""A source token is read if any head of the last layers gives it this weight at any step."""
SOME, MANY = 0.1, 0.2
"""Share of unread source tokens that is named in a short translation, and in any."""


class Looking(TypedDict, total=False):
    """What is changed in a run, and what is recorded."""

    capture: bool | Capture  # True, False, or what to record
    # functions that change a value, by its name in ``transformer.hooks``; passes that read the output again
    # call them, too
    hooks: Mapping[str, HookFunction]
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
        reader: Any,  # the ``Translator`` that is asked
        text: str = "",  # the source; for a language model the prompt
        output: TokenizedText | None = None,  # the output, if it is given
        **options: Unpack[Options],
    ) -> None:
        if wrong := options.keys() - (Options if output is None else Looking).__annotations__:
            raise TypeError(f"There is no option {min(wrong)} here.")
        cut, typed = reader.cut(text), list[tuple[int, str]]()
        self.reader, self.model, self.output, self.text = reader, reader.model, output, cut.clean.text
        self.config: ModelConfig = reader.config
        self.named: Callable[[Iterable[int]], tuple[str, ...]] = reader.tokenizer.target.named
        self.rules: SearchRules = reader.rules
        self.notes = (*reader.notes, *cut.notes(), *(output.notes() if output else ()))
        self.values, self.functions = tuple(options.get("interventions", ())), options.get("hooks") or {}
        if self.functions:
            function_edits(self.functions, self.config)  # refuses what the model lacks
        capture = options.get("capture", True)
        if not isinstance(capture, bool | Capture):
            raise TypeError(f"capture is {capture!r:.40}; it must be True, False or a Capture.")
        self.capture = Capture() if capture is True else capture or None
        if self.capture and any(each.part == "stream" for each in self.values):
            self.capture = replace(self.capture, residual=True)

        # what is read, and how much may be written
        if not reader.continues:
            end = self.config.eos_id
            typed = [*zip(cut.ids, cut.pieces, strict=True), (end, reader.tokenizer.source.named([end])[0])]
        source = len(typed) - sum(isinstance(each, do.DropSource) for each in self.values)
        prompt: tuple[int, ...] = cut.ids if reader.continues else ()
        self.given = self.limit = len(prompt if output is None else output.ids)
        shape = RunShape(self.config, len(typed), source, self.limit, self.given)
        if output is None:
            self._plan_search(prompt, source, cut.start, options)
            shape = replace(shape, target=self.limit, forced=None)

        # what is changed
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

    def _plan_search(self, prompt: tuple[int, ...], source: int, start: int | None, options: Options) -> None:
        """How an output is searched for, which begins with a prompt, and how long it may be."""
        rules, longest, most = self.rules, self.config.max_positions, options.get("max_length")
        self.sample, self.tree = options.get("sample"), options.get("tree", False)
        usual = rules.beam_size if self.sample is None else 1
        size = usual if options.get("beam_size") is None else options["beam_size"]
        if most is None:
            most = min(rules.max_length or int(1.5 * source) + 10, longest) if source else LENGTH
        least = 1 if source else len(prompt) + 1
        for name, value, low, high in (("beam_size", size, 1, 64), ("max_length", most, least, longest)):
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or not low <= value <= high:
                must = f"it must be a whole number from {low:,} to {high:,}"
                raise ValueError(f"{name} is {value!r:.80}; {must}.")
        self.beam_size, self.limit = int(size), int(most)  # type: ignore[arg-type]
        if self.sample is not None and (self.beam_size != 1 or self.tree):
            raise ValueError("Sampling follows one hypothesis and builds no tree; use it with beam_size=1.")
        penalties = options.get("length_penalty"), options.get("length_offset")
        if penalties != (None, None):
            rules = rules.with_penalty(*penalties)
        rules = rules if start is None else replace(rules, forced_start=start)
        for each in () if source else self.values:
            if isinstance(each, do.Prefix) or (isinstance(each, do.Choose) and each.step < len(prompt)):
                raise do.InterventionError(
                    f"The prompt decides its own tokens, so this cannot be done: {each}."
                )
        if asked := [*([do.Prefix(prompt)] if prompt else []), *self.values]:
            rules = constrained(rules, asked, self.reader.token_id, self.config.eos_id)
        self.rules = rules

    def _material(self, value: do.Intervention, shape: RunShape) -> Tensor | None:
        """Values that a change puts in, if they must be computed first."""
        if isinstance(value, do.Ablate) and value.by == "mean":
            if (means := self.reader.means) is None:
                where = "" if self.reader.continues else "measure them with `python -m explorer survey`, or "
                raise do.InterventionError(
                    f"This model has no mean outputs of its heads: {where}ablate by zero."
                )
            outputs: Tensor = means.outputs[value.kind]
            return outputs[value.layer, list(value.heads(self.config.n_heads))]
        if not isinstance(value, do.Patch):
            return None
        output = self.reader.output(value.target or (self.config.eos_id,))
        record: Looking = {"capture": Capture(residual=True), "interventions": value.interventions}
        other = Request(self.reader, value.text, output, **record).replayed(output.ids)
        there = other.trace.tensors[value.hook]
        there = there[value.heads(1)[0]] if value.part == "heads" else there
        return there[value.taken(len(there), shape.exact(value.side))]

    def run(self) -> Iterator[DecodeStep | Translation]:
        """Each step of the search (in a beam: of the best hypothesis so far), and finally the run; of a given
        output only the run."""
        if self.output is not None:
            yield self.replayed(self.output.ids)
            return
        in_beam, history, newest = self.beam_size != 1 or self.tree, list[Node](), Node(self.config.bos_id)
        state, hooks = begin([self], self.capture, in_beam)
        for newest, *_ in self.search(state, [self.limit], history if self.tree else None):
            yield self._step(newest)
        nodes = newest.path()
        if in_beam and self.capture is not None:
            state.read([[node.token_id for node in nodes]], hooks)
        method = "greedy" if self.beam_size == 1 else f"beam-{self.beam_size}"
        method = method if self.sample is None else f"sample-{self.sample.seed}"
        done = self._finished(tuple(map(self._step, nodes)), method, hooks)
        if self.tree:
            tree = search_tree(history, self.beam_size, self.rules, self.named, self._greedy)
            done = replace(done, tree=tree)
        yield done

    def search(
        self,
        state: DecodingState,  # of this text, or of a batch with rules and options like this one's
        limits: Sequence[int],
        history: list[Node] | None = None,  # gets all that a beam looks at
    ) -> Decoding:
        """The steps of the search."""
        if self.beam_size != 1 or self.tree:
            return beam_search(state, limits, self.beam_size, self.rules, history)
        return decode(state, limits, None if self.sample is None else self.sample.chooser(), self.rules)

    def _greedy(self) -> Iterator[Node]:
        """Greedy search for the same request, token by token, unrecorded."""
        greedy = copy(self)
        greedy.beam_size, greedy.tree = 1, False
        for (newest,) in greedy.search(begin([self])[0], [self.limit]):
            (newest.token,) = self.named([newest.token_id])
            newest.score = self.rules.score(newest.total, newest.step + 1)
            yield newest

    def replayed(
        self,
        ids: tuple[int, ...],  # the output
        log_probs: tuple[float, ...] | None = None,  # those of an earlier run, which the audit compares
        method: str = "forced",
        passed: tuple[Tensor, Hooks | None] | None = None,  # a pass that was made, and who looked
        row: int = 0,  # of the batch of that pass
    ) -> Translation:
        """The run of a given output, read in one pass (section 3.1, the masked decoder).

        Because of the causal mask, this pass computes the same values for every step as a search does.
        """
        distribution, hooks = passed or self._passed(ids, self.capture)
        now, best = _of_tokens(distribution, ids), candidates_of(distribution, distribution, distribution)
        names = self.output.pieces if self.output else repeat(None)
        rows = zip(range(len(ids)), ids, log_probs or now, best, names, strict=False)
        steps = tuple(
            self._step(Node(i, at, log_prob, candidates=c), name) for at, i, log_prob, c, name in rows
        )
        return self._finished(steps, method, hooks, (lambda: now) if log_probs else None, row)

    def _passed(self, ids: tuple[int, ...], capture: Capture | None = None) -> tuple[Tensor, Hooks | None]:
        """(target, pieces) log-probabilities from a new pass without a cache, and who looked at it."""
        state, hooks = begin([self], capture)
        return state.forced([ids], hooks)[0], hooks

    def _step(self, node: Node, name: str | None = None) -> DecodeStep:
        """One token of an output, with what else could have come next."""
        assert node.candidates is not None
        ids, values, excluded, forced = node.candidates
        best = tuple(map(Alternative, self.named(ids), ids, values, excluded))
        name = name or self.named([node.token_id])[0]
        return DecodeStep(name, node.token_id, node.log_prob, best, node.parent_row, forced)

    def _finished(
        self,
        steps: tuple[DecodeStep, ...],
        method: str,
        hooks: Hooks | None,  # who looked
        again: Callable[[], tuple[float, ...]] | None = None,  # the log-probabilities by another pass
        row: int = 0,
    ) -> Translation:
        """The finished run with its trace, whose first audit asks for that other pass."""
        config, named, start = self.config, self.named, self.config.bos_id
        ids, target = tuple(step.token_id for step in steps), tuple(step.token for step in steps)
        log_probs = tuple(step.log_prob for step in steps)
        text: str = self.reader.tokenizer.target.decode(ids).strip()
        read, trace = (*named([start]), *target[:-1]), None
        other_pass = again or cache(lambda: _of_tokens(self._passed(ids)[0], ids))

        def audited(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
            report = audit(trace, places, log_probs, other_pass(), self.model)
            if not self.values:
                return report
            right = audited_tokens(self.values, self.source_tokens, list(zip(named(ids), ids, strict=True)))
            return report.joined(AuditReport((Check(TOKENS, float(not right), 0.0),)))

        if hooks is not None and self.capture is not None:
            tokens = {
                "decoder": TokenTrace((start, *ids[:-1]), read),
                "written": TokenTrace(ids, target, text),
            }
            if self.source_ids:
                tokens["encoder"] = TokenTrace(self.source_ids, self.source_tokens, self.text)
            trace = trace_of(hooks, config, audited, row, self.changes, tokens, tuple(self.functions))
        return Translation(
            source_text=self.text if self.source_ids else "",
            text=text,
            source_tokens=self.source_tokens,
            decoder_input_tokens=read,
            target_tokens=target,
            log_probs=log_probs,
            steps=steps,
            method=method,
            model=self.reader.name,
            config=config,
            notes=self._notes(ids, text, trace),
            attention=trace,
            interventions=self.values,
            functions=tuple(self.functions),
            distributions=lambda: self._passed(ids)[0],  # of the request, which holds nothing recorded
            prompt=None if self.source_ids else self.text if self.output is None else text,
            n_given=self.given,
        )

    def _notes(
        self,
        ids: tuple[int, ...],  # the output
        text: str,  # its text
        trace: AttentionTrace | None,  # what was recorded of it
    ) -> tuple[str, ...]:
        """Sentences for the reader of an output, each once."""
        config, free, end = self.config, self.output is None, ids[-1] == self.config.eos_id
        length, trained = len(self.source_ids) or len(ids), config.trained_length or 0
        unknown = ids.count(config.unk_id)
        late = [each for each in self.values if min(_decoder_rows(each), default=-1) >= len(ids)]
        table = {
            f"This text has {length:,} tokens: longer than any text in this model's training "
            f"({trained:,}).": 0 < trained < length,
            f"The output was cut at {len(ids):,} tokens, so it is incomplete.": not end,
            "The model wrote an empty text.": end and free and not text,
            f"The output has {unknown} piece{'s' * (unknown > 1)} <unk>, where the model wrote something "
            "that its vocabulary cannot spell.": free and unknown > 0,
            **{f"The output ended before this change could act: {each}.": True for each in late},
            LEFT_OUT: end and self._leaves_out(ids, trace),
        }
        return tuple(dict.fromkeys((*self.notes, *(said for said, holds in table.items() if holds))))

    def _leaves_out(self, ids: tuple[int, ...], trace: AttentionTrace | None) -> bool:
        """Whether a translation covers much less than its source."""
        config = self.config
        if not self.source_ids or config.task != "translate":
            return False
        prompt = next(filter(self.text.startswith, config.prompt_texts), "")
        languages = takewhile(config.language_pieces.__contains__, self.source_tokens)
        first = len(self.reader.ids(prompt)) if prompt else len(list(languages))  # says what to do
        last = len(self.source_ids) - 1
        limit = unread_limit(last - first, len(ids) - 1)
        if limit in (0.0, math.inf):
            return limit == 0.0
        if trace is None:  # a pass more only where the length asks for it
            if self.functions or SHORT <= (len(ids) - 1) / (last - first) <= LONG:
                return False
            again = copy(self)
            again.capture = Capture()
            trace = again.replayed(ids).trace
        weights = [layer.map().weights.amax((0, 1)) for layer in trace.layers[AttentionKind.CROSS][-LAYERS:]]
        return float((torch.stack(weights).amax(0)[first:last] < READ).float().mean()) >= limit


def begin(
    requests: Sequence[Request],  # of texts with rules and options alike; of several, none changes the model
    capture: Capture | None = None,
    in_beam: bool = False,
) -> tuple[DecodingState, Hooks | None]:
    """The texts, encoded and ready to be decoded; and who looks: changes, functions, what records.

    In a beam hypotheses change rows, so that only the best one is recorded, after the search.
    """
    first, hooks, steps, source = requests[0], None, None, None
    if capture is not None or first.changes or first.functions:
        hooks = steps = hooks_of(first.config, capture, first.changes, first.functions)
        if in_beam:
            steps = hooks_of(first.config, None, first.changes, first.functions)
    if first.source_ids:
        rows = pad([each.source_ids for each in requests], first.config.pad_id)
        source = rows.to(first.model.embedding.weight.device)
    return DecodingState(first.model, source, hooks, steps), hooks


def _of_tokens(distribution: Tensor, ids: Sequence[int]) -> tuple[float, ...]:
    """The log-probability of each token, from (tokens, vocab_size) log-probabilities."""
    places = torch.tensor(ids, device=distribution.device)[:, None]
    return tuple(distribution.gather(1, places)[:, 0].tolist())


def _decoder_rows(value: do.Intervention) -> tuple[int, ...]:
    """The rows of the decoder that a change names; none if it acts on all."""
    match value:
        case do.Patch(side="decoder", positions=positions):
            return tuple(here for here, _ in positions or ())
        case do.OfHeads(kind=AttentionKind.ENCODER):
            return ()
        case do.SetRow(query=query):
            return (query,)
        case do.Ablate(rows=rows) | do.Scale(rows=rows):
            return rows or ()
        case _:
            return ()


def unread_limit(
    read: int,  # source tokens, without special ones
    written: int,  # target tokens, without special ones
) -> float:
    """Share of unread source tokens from which on a translation covers much less than its source; infinite
    if nothing can be said."""
    if read < FEWEST:
        return math.inf
    length = written / read
    return 0.0 if length < FAR_TOO_SHORT else SOME if length < SHORT else MANY
