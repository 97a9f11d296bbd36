"""What a model is asked for, and the run that answers: searched step by step, or read in a pass."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from itertools import repeat, takewhile
from typing import Self, TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor

from transformer import interventions as do
from transformer.audit import PIECES, TOKENS, audit
from transformer.beam import beam_search, search_tree
from transformer.config import AttentionKind, Place
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
from transformer.filling import MaskedText
from transformer.hooks import Capture, HookFunctions, Hooks, function_edits
from transformer.interventions.edits import Change
from transformer.interventions.request import RunShape, check
from transformer.reader import InputError, Reader, SourceToken
from transformer.run import Alternative, DecodeStep, Translation
from transformer.sampling import Sampling
from transformer.text.tokenizer import TokenizedText
from transformer.text.words import unknown_text
from transformer.trace import AttentionTrace, Auditor, TokenTrace, hooks_of, trace_of
from transformer.view import AuditReport, Check

LEFT_OUT = "The translation may leave out the end."
# Whether a translation covers its source is seen in its length, and in what its cross-attention
# reads of it; `python -m benchmarks left-out` measures the limits. Another pair of languages may
# need fewer tokens than it reads, so that length alone says something only when it is far too
# short; what no head reads, for any model.
FEWEST = 6
"""Source tokens from which on anything is said."""
SHORT, FAR_TOO_SHORT, LONG = 0.8, 0.5, 1.4
"""Target tokens per source token: fewer than usual, too few whatever is read, and so many as in a
loop."""
LENGTH = 60
"""Most tokens of a language model's text if the caller gives no number."""
READ, LAYERS = 0.15, 2
"""A source token is read if any head of the last layers gives it this weight at any step."""
SOME, MANY = 0.1, 0.2
"""Share of unread source tokens that is named in a short translation, and in any."""


class Looking(TypedDict, total=False):
    """What is changed in a run, and what is recorded."""

    capture: bool | Capture  # True, False, or what to record
    # functions that change a value, by its name in ``transformer.hooks``: one, or several that act
    # one after another; passes that read the output again call them, too
    hooks: Mapping[str, HookFunctions]
    # what to change in the run, see ``transformer.interventions``; in a forced pass, what chooses
    # or forbids tokens must agree with the output
    interventions: Iterable[do.Intervention]


class Options(Looking, total=False):
    """How a text is searched for, too. Steps and rows of a text with a prompt count from its
    start."""

    # 1 for greedy search, more for beam search (score Σ log p / length^α); None for the model's
    # rules, which say 1 for the models of this package
    beam_size: int | None
    # most tokens of the output, prompt and ``</s>`` included; None for the limit in the model's
    # rules, or if they set none, 1.5 × source tokens + 10, and 60 for a language model
    max_length: int | None
    sample: Sampling | None  # draw tokens instead; only with ``beam_size=1``
    length_penalty: (
        float | None
    )  # α of a beam's score; None for the model's rules, which say 1 for ours
    # k of the score Σ log p / ((k + length) / (k + 1))^α: 5 for the formula of Wu et al. (2016);
    # None for the model's rules, which say 0
    length_offset: int | None
    tree: bool  # whether ``Translation.tree`` keeps what the beam search looked at


@dataclass(frozen=True)
class ReadSource:
    """A text as a model reads it."""

    text: str  # as it was read: cleaned
    tokens: tuple[
        SourceToken, ...
    ]  # of a source, its end included; none of a language model's prompt
    prompt: tuple[int, ...]  # ids that the output of a language model begins with
    start: int | None  # id of the piece that the output begins with, if the text names one
    # id of what is read first: the start token, or a text's own first token, if it has one
    begins: int | None
    notes: tuple[str, ...]  # sentences for the reader

    @classmethod
    def of(cls, reader: Reader, text: str) -> Self:
        """Reads a text; InputError if it is empty or too long."""
        cut = reader.cut(text)
        begins: int | None = reader.config.bos_id
        if reader.continues:
            tokens: tuple[SourceToken, ...] = ()
            prompt = cut.ids
            if not reader.config.starts_with_token:
                begins = next(iter(prompt), None)
                prompt = prompt[1:]
        else:
            tokens = reader.framed(cut)
            prompt = ()
        return cls(
            text=cut.clean.text,
            tokens=tokens,
            prompt=prompt,
            start=cut.start,
            begins=begins,
            notes=cut.notes(),
        )


@dataclass(frozen=True)
class SearchPlan:
    """How an output is searched for, and how long it may be."""

    limit: int  # most tokens of the output
    rules: SearchRules
    beam_size: int = 1
    sample: Sampling | None = None
    tree: bool = False

    @classmethod
    def of(
        cls,
        reader: Reader,
        source: ReadSource,
        n_source: int,  # number of source tokens that the model reads
        changes: Sequence[do.Intervention],
        options: Options,
    ) -> Self:
        """What the options ask for; ValueError if one is out of range, or two contradict each
        other."""
        sample = options.get("sample")
        tree = options.get("tree", False)
        beam_size = options.get("beam_size")
        if beam_size is None:
            beam_size = reader.rules.beam_size if sample is None else 1
        beam_size = _whole("beam_size", beam_size, 1, 64)
        if sample is not None and (beam_size != 1 or tree):
            raise ValueError(
                "Sampling follows one hypothesis and builds no tree; use it with beam_size=1."
            )
        least = len(source.prompt) + 1 if reader.continues else 1
        most = options.get("max_length")
        if most is None:
            most = _usual_length(reader, n_source, len(source.prompt))
        limit = _whole("max_length", most, least, reader.config.max_positions)
        rules = reader.rules
        penalties = options.get("length_penalty"), options.get("length_offset")
        if penalties != (None, None):
            rules = rules.with_penalty(*penalties)
        if source.start is not None:
            rules = replace(rules, forced_start=source.start)
        if source.prompt:
            rules = replace(rules, n_given=len(source.prompt))
        deciding = [*_deciding_prompt(source, changes), *changes]
        if deciding:
            rules = constrained(rules, deciding, reader.token_id, reader.config.eos_id)
        return cls(limit=limit, rules=rules, beam_size=beam_size, sample=sample, tree=tree)


def _whole(name: str, value: object, low: int, high: int) -> int:
    """An option's whole number in a range; ValueError if it is something else."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and low <= value <= high:
        return int(value)
    must = f"it must be a whole number from {low:,} to {high:,}"
    raise ValueError(f"{name} is {value!r:.80}; {must}.")


def _usual_length(reader: Reader, n_source: int, n_prompt: int) -> int:
    """Most tokens of an output if the caller gives no number."""
    if reader.continues:  # half of them may be the prompt's; a longer one counts besides
        usual = LENGTH + max(0, n_prompt - LENGTH // 2)
        return min(usual, reader.config.max_positions)
    usual = reader.rules.max_length or int(1.5 * n_source) + 10
    return min(usual, reader.config.max_positions)


def _deciding_prompt(
    source: ReadSource, changes: Iterable[do.Intervention]
) -> Iterator[do.Intervention]:
    """The prompt as a change; InterventionError if another change decides its tokens."""
    if not source.prompt and source.tokens:
        return
    for change in changes:
        chosen = isinstance(change, do.Choose) and change.step < len(source.prompt)
        if chosen or isinstance(change, do.Prefix):
            raise do.InterventionError(
                f"The prompt decides its own tokens, so this cannot be done: {change}."
            )
    if source.prompt:
        yield do.prefix(source.prompt)


def _recorded(capture: bool | Capture, changes: Iterable[do.Intervention]) -> Capture | None:
    """What is recorded of a run with changes; None for nothing."""
    if not isinstance(capture, bool | Capture):
        raise TypeError(f"capture is {capture!r:.40}; it must be True, False or a Capture.")
    if not capture:
        return None
    record = capture if isinstance(capture, Capture) else Capture()
    if any(change.part == "stream" for change in changes):
        return replace(record, residual=True)
    return record


def _edited(
    reader: Reader, tokens: Sequence[SourceToken], changes: Iterable[do.Intervention]
) -> tuple[SourceToken, ...]:
    """The source tokens after changes of the text as typed; InterventionError if none is left."""
    by_position = dict(enumerate(tokens))
    for change in changes:
        if isinstance(change, do.EditSource):
            token_id = reader.token_id(change.token, "source")
            (piece,) = reader.pieces([token_id], "source")
            by_position[change.position] = token_id, piece
        elif isinstance(change, do.DropSource):
            del by_position[change.position]
    if tokens and not by_position:
        raise do.InterventionError("No source token is left; keep one.")
    return tuple(by_position.values())


class Request:
    """What a model is asked for, checked; ``run`` answers it, and it can be put to the model again
    and again.

    A language model has no source; its prompt is the given beginning of the output. An encoder
    alone has no output, and takes no option of a search. All passes compute where the model was
    when it was asked, even if it leaves its GPU meanwhile.

    Raises:
        InputError: The text is empty or too long.
        InterventionError: A change does not fit the model, the text or the output.
        ValueError: An option is out of range, options contradict each other, or the model lacks a
            place.
    """

    def __init__(
        self,
        reader: Reader,  # the model that is asked
        text: str = "",  # the source; for a language model the prompt
        output: TokenizedText | None = None,  # the output, if it is given
        **options: Unpack[Options],
    ) -> None:
        self.writes = reader.config.writes
        allowed = Options if output is None and self.writes else Looking
        if wrong := options.keys() - allowed.__annotations__:
            raise TypeError(f"There is no option {min(wrong)} here.")
        self.reader = reader
        self.model = reader.model
        self.config = reader.config
        self.start = self.config.bos_id
        if output is not None and not self.config.starts_with_token:
            self.start = output.ids[0]
            output = replace(output, ids=output.ids[1:], pieces=output.pieces[1:])
        self.output = output
        self.named = reader.pieces
        self.values = tuple(options.get("interventions", ()))
        self.functions = options.get("hooks") or {}
        if self.functions:
            function_edits(self.functions, self.config)  # refuses what the model lacks
        self.capture = _recorded(options.get("capture", True), self.values)

        source = ReadSource.of(reader, text)
        if output is None and self.writes:
            if source.begins is None:
                raise InputError(
                    "This model has no start token, so it needs the beginning of a text; type one."
                )
            self.start = source.begins
        self.text = source.text
        self.notes = (*reader.notes, *source.notes, *(output.notes() if output else ()))

        dropped = sum(isinstance(change, do.DropSource) for change in self.values)
        n_source = len(source.tokens) - dropped
        if output is None and self.writes:
            plan = SearchPlan.of(reader, source, n_source, self.values, options)
            forced = None
        else:
            plan = SearchPlan(limit=len(output.ids) if output else 0, rules=reader.rules)
            forced = plan.limit
        self.rules = plan.rules
        self.limit = plan.limit
        # whether a text was to be continued by so many tokens, so that no end is missed
        self.ends_early = self.reader.continues and options.get("max_length") is not None
        self.beam_size = plan.beam_size
        self.sample = plan.sample
        self.tree = plan.tree
        self.given = len(source.prompt) if output is None else len(output.ids)

        shape = RunShape(
            config=self.config,
            typed=len(source.tokens),
            source=n_source,
            target=self.limit,
            forced=forced,
        )
        tokens = source.tokens
        if self.values:
            check(self.values, shape)
            tokens = _edited(reader, tokens, self.values)
        self.source_ids = tuple(token_id for token_id, _ in tokens)
        self.source_tokens = tuple(piece for _, piece in tokens)
        self.changes = tuple(Change(value, self._material(value, shape)) for value in self.values)

    def _material(self, value: do.Intervention, shape: RunShape) -> Tensor | None:
        """Values that a change puts in, if they must be computed first."""
        if isinstance(value, do.Ablate) and value.by == "mean":
            if (means := self.reader.means) is None:
                way = "ablate by zero"
                if self.writes and not self.reader.continues:
                    way = f"measure them with `python -m explorer survey`, or {way}"
                raise do.InterventionError(f"This model has no mean outputs of its heads: {way}.")
            outputs: Tensor = means.outputs[value.kind]
            return outputs[value.layer, list(value.heads(self.config.n_heads))]
        if not isinstance(value, do.Patch):
            return None
        record: Looking = {"capture": Capture(residual=True), "interventions": value.interventions}
        if self.writes:
            output = self.reader.output(value.target or (self.config.eos_id,))
            run = Request(self.reader, value.text, output, **record).replayed(output.ids)
        else:
            run = Request(self.reader, value.text, **record).read()
        rows = run.trace.tensors[value.hook]
        if value.part == "heads":
            rows = rows[value.heads(1)[0]]
        return rows[value.taken(len(rows), shape.exact(value.side))]

    def run(self) -> Iterator[DecodeStep | Translation]:
        """Each step of the search (in a beam: of the best hypothesis so far), and finally the run;
        of a given output, or without any, only the run."""
        if not self.writes:
            yield self.read()
            return
        if self.output is not None:
            yield self.replayed(self.output.ids)
            return
        in_beam = self.beam_size != 1 or self.tree
        history = list[Node]()
        newest = Node(self.start)
        state, hooks = begin([self], self.capture, in_beam)
        for newest, *_ in self.search(state, [self.limit], history if self.tree else None):
            yield self._step(newest)
        nodes = newest.path()
        if in_beam and self.capture is not None:
            state.read([[node.token_id for node in nodes]], hooks)
        done = self._finished(tuple(map(self._step, nodes)), self._method, hooks)
        if self.tree:
            tree = search_tree(history, self.beam_size, self.rules, self.named, self._greedy)
            done = replace(done, tree=tree)
        yield done

    @property
    def _method(self) -> str:
        """The name of its way of decoding."""
        if self.sample is not None:
            return f"sample-{self.sample.seed}"
        if self.beam_size != 1:
            return f"beam-{self.beam_size}"
        return "greedy"

    def search(
        self,
        state: DecodingState,  # of this text, or of a batch with rules and options like this one's
        limits: Sequence[int],
        history: list[Node] | None = None,  # gets all that a beam looks at
    ) -> Decoding:
        """The steps of the search."""
        if self.beam_size != 1 or self.tree:
            return beam_search(state, limits, self.beam_size, self.rules, history)
        choose = None if self.sample is None else self.sample.chooser()
        return decode(state, limits, choose, self.rules)

    def _greedy(self) -> Iterator[tuple[Node, str]]:
        """Greedy search for the same request, token by token, unrecorded."""
        greedy = copy(self)
        greedy.beam_size = 1
        greedy.tree = False
        for (newest,) in greedy.search(begin([self])[0], [self.limit]):
            (piece,) = self.named([newest.token_id])
            newest.score = self._score_of(newest)
            yield newest, piece

    def _score_of(self, node: Node) -> float:
        """The score of an output, as a beam has it: of what was written after a prompt."""
        n_given = self.rules.n_given
        written = node.step + 1 - n_given
        if written < 1:
            return node.total
        given = sum(before.log_prob for before in node.path()[:n_given])
        return self.rules.score(node.total - given, written)

    def replayed(
        self,
        ids: tuple[int, ...],  # the output
        log_probs: tuple[float, ...]
        | None = None,  # those of an earlier run, which the audit compares
        method: str = "forced",
        passed: tuple[Tensor, Hooks | None] | None = None,  # a pass that was made, and who looked
        row: int = 0,  # of the batch of that pass
    ) -> Translation:
        """The run of a given output, read in one pass (section 3.1, the masked decoder).

        Because of the causal mask, this pass computes the same values for every step as a search
        does.
        """
        distribution, hooks = passed or self._passed(ids, self.capture)
        now = _of_tokens(distribution, ids)
        best = candidates_of(distribution, distribution, distribution)
        names = self.output.pieces if self.output else repeat(None)
        rows = zip(range(len(ids)), ids, log_probs or now, best, names, strict=False)
        steps = tuple(
            self._step(Node(i, at, log_prob, candidates=c), name)
            for at, i, log_prob, c, name in rows
        )
        return self._finished(steps, method, hooks, (lambda: now) if log_probs else None, row)

    def _passed(
        self, ids: tuple[int, ...], capture: Capture | None = None
    ) -> tuple[Tensor, Hooks | None]:
        """(target, pieces) log-probabilities from a new pass without a cache, and who looked at
        it."""
        state, hooks = begin([self], capture)
        return state.forced([ids], hooks)[0], hooks

    def read(
        self,
        passed: tuple[Tensor, Hooks | None] | None = None,  # (source, d_model), and who looked
        row: int = 0,  # of the batch of that pass
    ) -> Translation:
        """The run of an encoder alone: one pass over its text, or one that was made."""
        text = MaskedText(
            reader=self.reader,
            model=self.model,
            token_ids=self.source_ids,
            pieces=self.source_tokens,
            changes=self.changes,
            functions=self.functions,
        )
        features, hooks = passed or self._passed_once(text)
        predicts = self.config.mask_id is not None
        fills = dict[int, DecodeStep]()
        if predicts:
            fills = text.fills(features, hooks)
        filled = text.text(fills)
        trace = None
        if hooks is not None and self.capture is not None:
            trace = trace_of(
                hooks,
                self.config,
                self._auditor(text, fills),
                row,
                self.changes,
                tokens={"encoder": TokenTrace(self.source_ids, self.source_tokens, self.text)},
                functions=tuple(self.functions),
            )
        return Translation(
            source_text=self.text,
            text=filled,
            source_tokens=self.source_tokens,
            decoder_input_tokens=(),
            target_tokens=(),
            log_probs=(),
            steps=(),
            method="read",
            model=self.reader.name,
            config=self.config,
            notes=self._notes((), filled, trace),
            attention=trace,
            interventions=self.values,
            functions=tuple(self.functions),
            distributions=(lambda: text.distributions()) if predicts else None,
            fills=fills,
            predict=text.predicted if predicts else None,
        )

    def _passed_once(self, text: MaskedText) -> tuple[Tensor, Hooks | None]:
        """(source, d_model) the encoder's output, and who looked."""
        hooks = hooks_of(self.config, self.capture, self.changes, self.functions)
        (features,) = text.features([self.source_ids], hooks)
        return features, hooks

    def _auditor(self, text: MaskedText, fills: Mapping[int, DecodeStep]) -> Auditor:
        """The checks of a text that was read, with the log-probabilities at its masks."""
        read = tuple(fill.log_prob for fill in fills.values())

        def audited(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
            replayed = tuple(fill.log_prob for fill in text.predicted(fills).values())
            report = audit(trace, places, read, replayed, self.model)
            return report.joined(self._of_tokens(trace, []))

        return audited

    def _of_tokens(self, trace: AttentionTrace, written: Sequence[SourceToken]) -> AuditReport:
        """Whether pieces and changed tokens of a trace are what they must be; ``written`` has ids
        and pieces of the output."""
        checks = [Check(PIECES, float(not self._right_pieces(trace.tokens)), 0.0)]
        if self.values:
            named = [(piece, token_id) for token_id, piece in written]
            right = audited_tokens(self.values, self.source_tokens, named)
            checks.append(Check(TOKENS, float(not right), 0.0))
        return AuditReport(tuple(checks))

    def _step(self, node: Node, name: str | None = None) -> DecodeStep:
        """One token of an output, with what else could have come next."""
        assert node.candidates is not None
        ids, values, excluded, forced = node.candidates
        best = tuple(map(Alternative, self.named(ids), ids, values, excluded))
        name = name or self.named([node.token_id])[0]
        return DecodeStep(
            token=name,
            token_id=node.token_id,
            log_prob=node.log_prob,
            alternatives=best,
            parent=node.parent_row,
            forced=forced,
        )

    def _finished(
        self,
        steps: tuple[DecodeStep, ...],
        method: str,
        hooks: Hooks | None,  # who looked
        again: Callable[[], tuple[float, ...]]
        | None = None,  # the log-probabilities by another pass
        row: int = 0,
    ) -> Translation:
        """The finished run with its trace, whose first audit asks for that other pass."""
        config = self.config
        named = self.named
        start = self.start
        ids = tuple(step.token_id for step in steps)
        target = tuple(step.token for step in steps)
        log_probs = tuple(step.log_prob for step in steps)
        text = self.reader.text(self.reader.whole(ids, start))
        read = (*named([start]), *target[:-1])
        trace = None
        other_pass = again or cache(lambda: _of_tokens(self._passed(ids)[0], ids))

        def audited(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
            report = audit(trace, places, log_probs, other_pass(), self.model)
            written = list(zip(ids, named(ids), strict=True))
            return report.joined(self._of_tokens(trace, written))

        if hooks is not None and self.capture is not None:
            tokens = {
                "decoder": TokenTrace((start, *ids[:-1]), read),
                "written": TokenTrace(ids, target, text),
            }
            if self.source_ids:
                tokens["encoder"] = TokenTrace(self.source_ids, self.source_tokens, self.text)
            trace = trace_of(
                hooks,
                config,
                audited,
                row,
                self.changes,
                tokens=tokens,
                functions=tuple(self.functions),
            )
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
            notes=self._notes(steps, text, trace),
            attention=trace,
            interventions=self.values,
            functions=tuple(self.functions),
            # of the request, which holds nothing recorded
            distributions=lambda: self._passed(ids)[0],
            prompt=self._prompt(text),
            n_given=self.given,
            start_id=start,
        )

    def _prompt(self, text: str) -> str | None:
        """The prompt of a run with an output of this text; None for a run with a source."""
        if self.source_ids:
            return None
        return self.text if self.output is None else text

    def _right_pieces(self, tokens: Mapping[str, TokenTrace]) -> bool:
        """Whether each recorded piece is the vocabulary's for its id."""
        for read, trace in tokens.items():
            side = "source" if read == "encoder" else "target"
            pieces = self.reader.pieces(trace.ids, side)
            for token_id, piece, named in zip(trace.ids, trace.pieces, pieces, strict=True):
                unknown = unknown_text(piece) is not None and token_id == self.config.unk_id
                if not unknown and piece != named:
                    return False
        return True

    def _notes(
        self,
        steps: tuple[DecodeStep, ...],  # the output
        text: str,  # its text
        trace: AttentionTrace | None,  # what was recorded of it
    ) -> tuple[str, ...]:
        """Sentences for the reader of an output, each once."""
        ids = tuple(step.token_id for step in steps)
        config = self.config
        free = self.output is None
        end = bool(ids) and ids[-1] in self.reader.ends
        written = steps[self.given :]
        best = [step.alternatives[0] for step in written if step.alternatives]
        padding = sum(token.excluded and token.token_id == config.pad_id for token in best)
        places = "1 step" if padding == 1 else f"{padding} steps"
        length = len(self.source_ids) or len(ids)
        trained = config.trained_length or 0
        unknown = ids.count(config.unk_id)
        unknowns = "1 piece" if unknown == 1 else f"{unknown} pieces"
        late = [value for value in self.values if min(_decoder_rows(value), default=-1) >= len(ids)]
        table = {
            f"This text has {length:,} tokens: longer than any text in this model's training "
            f"({trained:,}).": 0 < trained < length,
            f"The output was cut at {len(ids):,} tokens, so it is incomplete.": self.writes
            and not end
            and not self.ends_early,
            "The model wrote an empty text.": end and free and not text,
            f"The output has {unknowns} <unk>, where the model wrote something that its vocabulary "
            "cannot spell.": free and unknown > 0,
            f"At {places} the model found <pad> most probable; padding is never written, so the "
            "next best token stands there.": free and padding > 0,
            **{f"The output ended before this change could act: {value}.": True for value in late},
            LEFT_OUT: end and self._leaves_out(ids, trace),
        }
        return tuple(
            dict.fromkeys((*self.notes, *(note for note, holds in table.items() if holds)))
        )

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
            capturing = copy(self)
            capturing.capture = Capture()
            trace = capturing.replayed(ids).trace
        weights = [
            layer.map().weights.amax((0, 1))
            for layer in trace.layers[AttentionKind.CROSS][-LAYERS:]
        ]
        return float((torch.stack(weights).amax(0)[first:last] < READ).float().mean()) >= limit


def begin(
    requests: Sequence[
        Request
    ],  # of texts with rules and options alike; of several, none changes the model
    capture: Capture | None = None,
    in_beam: bool = False,
) -> tuple[DecodingState, Hooks | None]:
    """The texts, encoded and ready to be decoded; and who looks: changes, functions, what records.

    In a beam hypotheses change rows, so that only the best one is recorded, after the search.
    """
    first = requests[0]
    hooks = None
    steps = None
    source = None
    if capture is not None or first.changes or first.functions:
        hooks = steps = hooks_of(first.config, capture, first.changes, first.functions)
        if in_beam:
            steps = hooks_of(first.config, None, first.changes, first.functions)
    if first.source_ids:
        rows = pad([request.source_ids for request in requests], first.config.pad_id)
        source = rows.to(first.model.embedding.weight.device)
    starts = [request.start for request in requests]
    return DecodingState(first.model, source, hooks, steps, starts), hooks


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
    """Share of unread source tokens from which on a translation covers much less than its source;
    infinite if nothing can be said."""
    if read < FEWEST:
        return math.inf
    length = written / read
    if length < FAR_TOO_SHORT:
        return 0.0
    return SOME if length < SHORT else MANY
