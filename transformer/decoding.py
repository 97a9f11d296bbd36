"""From a model to tokens: a batch of sequences being written, the rules of a search, greedy search,
sampling.

Every search is an iterator over steps: it yields the newest tokens at once, and last those that
ended the best outputs. Rules change what a search may choose, never the model's distribution:
log-probabilities and candidates stay the model's own, and a step that a rule decided is marked as
forced.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from transformer.attention import Cache, padding_mask
from transformer.hooks import Hooks
from transformer.interventions import Choose, Forbid, Intervention, InterventionError, Prefix, Token
from transformer.model import EncoderDecoder, EncoderModel, LanguageModel
from transformer.text.kinds import number

AnyModel = EncoderDecoder | LanguageModel | EncoderModel
ALTERNATIVES = 10
"""Number of most probable tokens that a step keeps of its distribution."""
MOST_LOGITS = 1 << 24
"""Logits that are computed at a time: 341 rows of 49,152 pieces, and 67 MB in float32.
``python -m benchmarks decoders`` measures smaller and larger blocks."""
BLOCK, FEW_BLOCKS = 256, 64
"""Numbers per block when ``largest`` searches a distribution; up to so many blocks, ``topk`` is
faster."""
STEEPEST = 100.0
"""Largest magnitude of α, and largest k, of a beam's score."""
NEVER = -float("inf")


class OverflowedError(ValueError):
    """A model computes no numbers, because its weights are too large; the message says so in one
    sentence."""


def numbers(log_probs: Tensor) -> Tensor:
    """The log-probabilities themselves; OverflowedError if one of them is not a number."""
    if bool(log_probs[..., 0].isnan().any()):  # a softmax with one such number consists of them
        raise OverflowedError(
            "This model cannot be shown: its weights are so large that its numbers overflow, "
            "and no probability comes out."
        )
    return log_probs


@dataclass(frozen=True, kw_only=True)
class SearchRules:
    """Settings of a search, a model's own and what a request adds; the defaults impose nothing."""

    beam_size: int = 1  # hypotheses per sentence if the caller gives no number; 1 is greedy search
    length_penalty: float = 1.0  # α of the score
    # k of the score, Σ log p / ((k + length) / (k + 1))^α: 0 divides by length^α, 5 is the formula
    # of Wu et al. (2016, equation 14)
    length_offset: int = 0
    # When a beam ends. True: as soon as it is full of finished hypotheses; False: when no running
    # hypothesis, at its present length, beats the worst finished one; "never": the same, at the
    # greatest length.
    early_stopping: bool | Literal["never"] = False
    max_length: int | None = (
        None  # most output tokens, the end token included; None lets the package decide
    )
    forbidden: tuple[tuple[int, ...], ...] = ()  # sequences of ids that the output must not contain
    # id of the only token allowed at the last position before the limit; None allows any
    forced_end: int | None = None
    forced_start: int | None = None  # id of the only token allowed first; None allows any
    min_tokens: int = 0  # fewest tokens before the end token
    no_repeat: int = (
        0  # length of the sequences that may occur only once, with the start token; 0 allows all
    )
    end_id: int | None = (
        None  # id of the end token, which ``min_tokens`` forbids; None forbids none
    )
    # whether the probabilities that remain without forbidden tokens are rescaled to sum to 1 before
    # scoring
    renormalize: bool = False
    other_ends: tuple[int, ...] = ()  # ids that end an output, too
    n_given: int = 0  # tokens of a prompt, none of which ends the output
    # what a request adds: steps, from 0, with the id of the only token allowed there
    chosen: tuple[tuple[int, int], ...] = ()
    # and steps, or None for every step, with the id of a token that is not allowed there
    barred: tuple[tuple[int | None, int], ...] = ()

    def score(self, total: float, length: int) -> float:
        """The score that ranks finished hypotheses, of Σ log p and the number of tokens that were
        written, the end token included; those of a prompt count in neither."""
        offset = self.length_offset
        return total / ((offset + length) / (offset + 1)) ** self.length_penalty

    def with_penalty(
        self, length_penalty: float | None = None, length_offset: int | None = None
    ) -> SearchRules:
        """The rules with another α or k; None keeps that of the rules. ValueError if one is out of
        range."""
        penalty = self.length_penalty if length_penalty is None else length_penalty
        offset = self.length_offset if length_offset is None else length_offset
        number(-STEEPEST, STEEPEST).check("length_penalty", penalty)
        number(0, STEEPEST).check("length_offset", offset)
        return replace(self, length_penalty=penalty, length_offset=offset)

    @property
    def lookback(self) -> int:
        """Number of past output tokens that decide which token is forbidden next."""
        if self.no_repeat:
            return sys.maxsize
        return max((len(sequence) - 1 for sequence in self.forbidden), default=0)

    @property
    def in_words(self) -> tuple[str, ...]:
        """The rules that depend on what has been written."""
        words = list[str]()
        if self.min_tokens > 0:
            words.append(f"no end before {self.min_tokens:,} tokens")
        if self.no_repeat == 1:
            words.append("no token twice")
        elif self.no_repeat > 1:
            words.append(f"no {self.no_repeat} tokens in a row twice")
        return tuple(words)

    def choices(
        self, log_probs: Tensor, endings: Sequence[tuple[int, ...]], last: Sequence[bool], step: int
    ) -> tuple[Tensor, Tensor]:
        """What the model's own rules leave to choose of, and what a request leaves of that.

        Both are (rows, pieces) log-probabilities, -inf if forbidden; where no rule applies,
        ``log_probs`` itself. Of each row, ``endings`` has the last ``lookback`` tokens or more, and
        ``last`` says whether the limit leaves room for only one.
        """
        allowed = self._own_choices(log_probs, endings, last, step)
        return allowed, self._requested_choices(log_probs, allowed, step)

    def _own_choices(
        self, log_probs: Tensor, endings: Sequence[tuple[int, ...]], last: Sequence[bool], step: int
    ) -> Tensor:
        """What the model's own rules leave."""
        only = [self._only_token(at_limit, step) for at_limit in last]
        too_short = step < self.min_tokens and self.end_id is not None
        if not (
            self.forbidden
            or self.no_repeat
            or too_short
            or any(token is not None for token in only)
        ):
            return log_probs
        allowed = log_probs.clone()
        for row, ending, token in zip(allowed, endings, only, strict=True):
            if token is not None:
                row.fill_(NEVER)[token] = 0.0
                continue
            without = self._excluded(ending)
            if too_short and self.end_id is not None:
                without |= {self.end_id, *self.other_ends}
            if without and len(without) < len(row):  # something must be left to choose
                row[list(without)] = NEVER
        return allowed.log_softmax(-1) if self.renormalize else allowed

    def _only_token(self, at_limit: bool, step: int) -> int | None:
        """The only token that the model's rules allow; None if they allow several."""
        starts = self.forced_start if step == 0 else None
        if starts is not None:
            return starts
        return self.forced_end if at_limit else None

    def _excluded(self, ending: tuple[int, ...]) -> set[int]:
        """Tokens that would complete a forbidden sequence, or repeat one that may occur only
        once."""
        excluded = set[int]()
        for *before, token in self.forbidden:
            if not before or ending[-len(before) :] == tuple(before):
                excluded.add(token)
        size = self.no_repeat - 1
        if 0 <= size <= len(ending):  # which has the start token, too
            latest = ending[len(ending) - size :]
            for place in range(size, len(ending)):
                if ending[place - size : place] == latest:
                    excluded.add(ending[place])
        return excluded

    def _requested_choices(self, log_probs: Tensor, allowed: Tensor, step: int) -> Tensor:
        """What a request leaves of the model's own choices.

        A token that it chose scores what the model gives it, and nothing ends before the last such
        step.
        """
        chosen = dict(self.chosen).get(step)
        if chosen is not None:
            left = torch.full_like(log_probs, NEVER)
            left[:, chosen] = log_probs[:, chosen]
            return left
        barred = [token for at, token in self.barred if at in (None, step)]
        if self.end_id is not None and any(step < at for at, _ in self.chosen):
            barred += [self.end_id, *self.other_ends]
        if not barred:
            return allowed
        return allowed.index_fill(1, torch.tensor(barred, device=allowed.device), NEVER)


FREE = SearchRules()


def constrained(
    rules: SearchRules,
    changes: Iterable[Intervention],
    token_id: Callable[[Token], int],
    end_id: int,
) -> SearchRules:
    """The rules with what some interventions add; the rules themselves if none is about the output.

    InterventionError if a token is unknown, or chosen after the end or although it is forbidden.
    """
    chosen = list[tuple[int, int]]()
    barred = list[tuple[int | None, int]]()
    for change in changes:
        match change:
            case Choose(step=step, token=token):
                chosen.append((step, token_id(token)))
            case Prefix(token_ids=tokens):
                chosen += [(step, token_id(token)) for step, token in enumerate(tokens)]
            case Forbid(token=token, step=at):
                barred.append((at, token_id(token)))
    latest = max((step for step, _ in chosen), default=0)
    for step, token_ in chosen:
        if token_ == end_id and rules.n_given <= step < latest:
            raise InterventionError(
                f"Step {step + 1} ends the output, so no token can be chosen after it."
            )
        if (None, token_) in barred or (step, token_) in barred:
            raise InterventionError(f"The token chosen at step {step + 1} is also forbidden there.")
    if not chosen and not barred:
        return rules
    if {(None, rules.forced_start), (0, rules.forced_start), (None, rules.forced_end)} & {*barred}:
        raise InterventionError(
            "The model's own rules put this token into every output, so it cannot be forbidden."
        )
    return replace(rules, end_id=end_id, chosen=tuple(chosen), barred=tuple(barred))


def pad(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    """(rows, longest) rows of numbers, filled up to the longest."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], dtype=torch.long)


class DecodingState:
    """A batch of sequences being written: what the encoder said of their sources, padding and
    cache.

    Nothing here changes the model, which is in ``eval()`` mode, so threads may share it.
    """

    def __init__(
        self,
        model: AnyModel,
        src_ids: Tensor
        | None,  # (batch, source) ids, padded with ``pad_id``; None for a language model
        hooks: Hooks | None = None,  # who looks at the encoder
        step_hooks: Hooks | None = None,  # who looks at the steps
        starts: Sequence[int] = (),  # the id after which each output begins; ``bos_id`` if empty
    ) -> None:
        self.model, self.config, self.step_hooks = model, model.config, step_hooks
        self.device = model.embedding.weight.device
        self.cache = Cache(model.config)
        self.memory: Tensor | None = None
        self.padding: Tensor | None = None
        self.row_padding: Tensor | None = (
            None  # that of the cache's rows, whose memory the cache holds
        )
        self.sentences = 1
        if src_ids is not None:
            assert isinstance(model, EncoderDecoder)
            self.sentences = len(src_ids)
            self.padding = padding_mask(src_ids, model.config.pad_id)
            self.row_padding = self.padding
            with torch.inference_mode():
                self.memory = model.encode(src_ids, self.padding, hooks)
        first = tuple(starts) or (model.config.bos_id,) * self.sentences
        self.sentences = len(first)
        self.start = torch.tensor(first, device=self.device)  # (batch,) what outputs begin after

    @torch.inference_mode()
    def log_probs(self, token_ids: Tensor) -> Tensor:
        """(rows,) last tokens → (rows, pieces) log-probabilities of the next; raises as
        ``numbers``."""
        features = self.features(token_ids[:, None], self.step_hooks, self.cache)
        logits = self.model.logits(features, self.step_hooks, self.cache.length - 1)
        return numbers(logits[:, -1].float().log_softmax(-1))

    @torch.inference_mode()
    def read_prompt(self, token_ids: Sequence[int]) -> Iterator[Tensor]:
        """The first tokens of an output, read at once → (some places, pieces) log-probabilities at
        their places, one after another; of one sentence, and raises as ``numbers``."""
        inputs = torch.tensor([[*self.start.tolist(), *token_ids[:-1]]], device=self.device)
        features = self.features(inputs, self.step_hooks, self.cache)[0]
        at_once = max(1, MOST_LOGITS // self.config.n_target_pieces)
        for first in range(0, len(features), at_once):
            some = features[None, first : first + at_once]
            logits = self.model.logits(some, self.step_hooks, first)
            yield numbers(logits[0].float().log_softmax(-1))

    @torch.inference_mode()
    def features(
        self, ids: Tensor, hooks: Hooks | None = None, cache: Cache | None = None
    ) -> Tensor:
        """(rows, new) ids → (rows, new, d_model) the decoder's output; with a cache, ids are the
        newest."""
        if self.memory is None:
            return self.model.features(ids, hooks=hooks, cache=cache)  # type: ignore[call-arg]
        assert isinstance(self.model, EncoderDecoder)
        padding = self.padding if cache is None else self.row_padding
        return self.model.decode(ids, self.memory, padding, cache=cache, hooks=hooks)

    def read(self, outputs: Sequence[Sequence[int]], hooks: Hooks | None = None) -> Tensor:
        """(sentences, target, d_model) the decoder's output for given outputs, read shifted right
        at once.

        Because of the causal mask, every step gets the same attention as in step-by-step decoding.
        """
        starts = self.start.tolist()
        inputs = [(start, *ids[:-1]) for start, ids in zip(starts, outputs, strict=True)]
        rows = pad(inputs, self.config.pad_id)
        return self.features(rows.to(self.device), hooks)

    @torch.inference_mode()
    def forced(self, outputs: Sequence[Sequence[int]], hooks: Hooks | None = None) -> Tensor:
        """(sentences, target, pieces) log-probabilities at every place of given outputs; as
        ``numbers``."""
        return numbers(self.model.logits(self.read(outputs, hooks), hooks).float().log_softmax(-1))

    @torch.inference_mode()
    def select(self, rows: Tensor, *, same_source: bool) -> None:
        """Keeps, repeats or reorders rows; ``same_source`` says that every row keeps its
        sentence."""
        self.cache.select(rows, same_source=same_source)
        if not same_source and self.row_padding is not None:
            self.row_padding = self.row_padding[rows]


class NodeState(StrEnum):
    """Fate of a continuation that a step of a beam looked at."""

    KEPT = "kept"  # the next step extended it
    FINISHED = "finished"  # it ended, and is among the best finished hypotheses
    OUTRANKED = "outranked"  # better continuations filled the beam
    # better finished hypotheses took its place, or ended the search while it was still open
    DISPLACED = "displaced"
    CUT = "cut"  # the length limit ended it; it is among the best hypotheses all the same


class Candidates(NamedTuple):
    """The ``ALTERNATIVES`` most probable next tokens of a row, best first."""

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]  # in nats
    excluded: tuple[bool, ...]  # whether the model's own search rules forbade the token
    forced: (
        bool  # whether those rules, or what a request adds to them, forbade the most probable token
    )


@dataclass(eq=False, slots=True)
class Node:
    """A token of an output that is being searched for, and so the output up to it: a chain."""

    token_id: int
    step: int = -1  # the step of the output, from 0; -1 for the start token
    log_prob: float = 0.0  # log-probability of the token under the model, in nats
    # what the search summed up to here: Σ log p, unless the model's rules rescale or force a token
    total: float = 0.0
    before: Node | None = field(
        default=None, repr=False
    )  # the output before it; None for the start token
    parent_row: int = 0  # the row of the search that it was appended to
    ended: bool = False  # whether the output ends here, with ``</s>`` or at the length limit
    score: float = (
        0.0  # what finished hypotheses are ranked by: see ``SearchRules.score``; else ``total``
    )
    state: NodeState = NodeState.OUTRANKED  # what became of it in a beam
    candidates: Candidates | None = field(
        default=None, repr=False
    )  # what else could have come next

    def extended(self, token_id: int, log_prob: float, candidates: Candidates) -> Node:
        """The output with one more token, ranked by Σ log p."""
        total = self.total + log_prob
        return Node(
            token_id=token_id,
            step=self.step + 1,
            log_prob=log_prob,
            total=total,
            before=self,
            score=total,
            candidates=candidates,
        )

    def chain(self) -> Iterator[Node]:
        """The nodes from the newest token back to the start token."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.before

    def path(self) -> tuple[Node, ...]:
        """The nodes of the output, oldest first, without the start token."""
        return tuple(self.chain())[-2::-1]

    def ending(self, count: int) -> tuple[int, ...]:
        """The last ``count`` tokens at most, including the start token."""
        return tuple(node.token_id for node in islice(self.chain(), count))[::-1]

    def hypothesis(self, tokens: Sequence[str] = ()) -> Hypothesis:
        """The output as a search returns it; with its pieces, where they are known."""
        path = self.path()
        log_probs = tuple(node.log_prob for node in path)
        return Hypothesis(
            token_ids=tuple(node.token_id for node in path),
            log_probs=log_probs,
            score=self.score,
            total=sum(log_probs),
            tokens=tuple(tokens),
        )


@dataclass(frozen=True)
class Hypothesis:
    """A finished output."""

    token_ids: tuple[
        int, ...
    ]  # the tokens, ending with ``eos_id`` unless the length limit cut them
    log_probs: tuple[float, ...]  # one per token, in nats, under the model
    score: float  # what the search ranks by: in beam search ``SearchRules.score``, else the sum
    total: float  # Σ log p
    tokens: tuple[str, ...] = ()  # the pieces, where they are known


Decoding = Iterator[tuple[Node, ...]]
"""The newest token of each row at every step; last, for each sentence the last token of its best
output."""
Limit = int | Sequence[int]
"""One limit for all sentences, or one for each."""
Choice = Callable[[Tensor], Tensor]
"""(rows, vocab_size) log-probabilities → (rows,) tokens."""


def finish(search: Decoding) -> tuple[Hypothesis, ...]:
    """Runs a search to its end: the best output of each sentence."""
    *_, last = search
    return tuple(node.hypothesis() for node in last)


def decode(
    state: DecodingState,  # the sentences
    max_length: Limit,  # most tokens per output, the end token included
    choose: Choice | None = None,  # how a sampler chooses; None takes the most probable token
    rules: SearchRules = FREE,  # forbidden or forced tokens
) -> Decoding:
    """Extends every sentence by one chosen token per step: greedy search or sampling."""
    tokens = state.start
    limits = limits_of(max_length, state.sentences)
    nodes = [Node(start) for start in state.start.tolist()]
    step = 0
    for node in given_nodes(state, rules):
        nodes = [node]
        tokens = torch.tensor([node.token_id], device=state.device)
        step += 1
        yield (node,)
    ends = {state.config.eos_id, *rules.other_ends}
    lookback = rules.lookback
    while not all(node.ended for node in nodes):
        distribution = state.log_probs(tokens)
        last = [step + 1 >= limit for limit in limits]
        endings = [node.ending(lookback) if lookback else () for node in nodes]
        (allowed, left) = rules.choices(distribution, endings, last, step)
        tokens = choose(left) if choose else largest(left, 1)[1][:, 0]
        candidates = candidates_of(distribution, allowed, left)
        log_probs = distribution.gather(1, tokens[:, None])[:, 0].tolist()
        for row, token_id in enumerate(tokens.tolist()):
            before = nodes[row]
            if before.ended:
                continue
            node = before.extended(token_id, log_probs[row], candidates[row])
            node.parent_row = row
            node.ended = (step >= rules.n_given and token_id in ends) or last[row]
            nodes[row] = node
        yield tuple(nodes)
        step += 1


def given_nodes(state: DecodingState, rules: SearchRules) -> Iterator[Node]:
    """The tokens of a prompt, which are read in one pass, one after another; none if there are
    fewer than two."""
    if rules.n_given < 2:
        return
    chosen = dict(rules.chosen)
    prompt = [chosen[step] for step in range(rules.n_given)]
    node = Node(int(state.start[0]))
    for distribution in state.read_prompt(prompt):
        step = node.step + 1
        token_ids = prompt[step : step + len(distribution)]
        tokens = torch.tensor(token_ids, device=distribution.device)[:, None]
        log_probs = distribution.gather(1, tokens)
        allowed = _allowed(distribution, rules, node, token_ids)
        candidates = candidates_of(distribution, allowed, allowed)
        rows = zip(token_ids, log_probs[:, 0].tolist(), candidates, strict=True)
        for token_id, log_prob, of_row in rows:
            # of a prompt only its own token may come next
            of_row = of_row._replace(forced=of_row.ids[0] != token_id)
            node = node.extended(token_id, log_prob, of_row)
            node.state = NodeState.KEPT
            yield node


def _allowed(
    distribution: Tensor, rules: SearchRules, before: Node, token_ids: Sequence[int]
) -> Tensor:
    """What the model's own rules leave at the places of a prompt; the distribution itself if
    nothing is forbidden there."""
    own = replace(rules, chosen=(), barred=())
    rows = list[Tensor]()
    free = True
    node = before
    for row, token_id in zip(torch.split(distribution, 1), token_ids, strict=True):
        ending = node.ending(rules.lookback) if rules.lookback else ()
        (allowed, _) = own.choices(row, [ending], [False], node.step + 1)
        free = free and allowed is row
        rows.append(allowed)
        node = Node(token_id, node.step + 1, before=node)
    return distribution if free else torch.cat(rows)


def limits_of(max_length: Limit, n_sentences: int) -> Sequence[int]:
    """The limit of each sentence."""
    return [max_length] * n_sentences if isinstance(max_length, int) else max_length


def candidates_of(distribution: Tensor, logits: Tensor, left: Tensor) -> tuple[Candidates, ...]:
    """The most probable tokens of each row, from the model's distribution, what its own rules leave
    of it, and what a request leaves of that: (rows, pieces) each."""
    (values, ids) = largest(distribution, min(ALTERNATIVES, distribution.shape[-1]))

    def forbidden(by_rules: Tensor) -> list[list[bool]]:
        """Of each row, which of these tokens are forbidden."""
        if by_rules is distribution:
            return [[False] * ids.shape[1]] * len(ids)
        excluded: list[list[bool]] = by_rules.gather(1, ids).isneginf().tolist()
        return excluded

    rows = zip(ids.tolist(), values.tolist(), forbidden(logits), forbidden(left), strict=True)
    return tuple(
        Candidates(tuple(token_ids), tuple(log_probs), tuple(excluded), forced[0])
        for token_ids, log_probs, excluded, forced in rows
    )


def largest(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` largest numbers of each row, largest first, and their places: (rows, count)
    each.

    These numbers lie in the ``count`` blocks with the largest maxima, which are found first:
    ``python -m benchmarks decoders`` measures what that gains.
    """
    blocks = rows.shape[1] // BLOCK
    if blocks <= max(count, FEW_BLOCKS):
        return rows.topk(count)
    in_blocks = rows[:, : blocks * BLOCK].view(len(rows), blocks, BLOCK)
    best = in_blocks.amax(2).topk(count).indices  # (rows, count)
    places = (best[:, :, None] * BLOCK + torch.arange(BLOCK, device=rows.device)).flatten(1)
    rest = torch.arange(blocks * BLOCK, rows.shape[1], device=rows.device).expand(len(rows), -1)
    places = torch.cat([places, rest], dim=1)
    values, order = rows.gather(1, places).topk(count)
    return values, places.gather(1, order)
