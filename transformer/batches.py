"""Many texts at once in padded batches, translated, scored, recorded; many changed passes over one text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from transformer.attention import token_mask
from transformer.audit import audit, head_view
from transformer.config import AttentionKind, ModelConfig, Place, Side
from transformer.decoding import DecodingState, Hypothesis, decode, finish, numbers
from transformer.hooks import At, Edit, Hooks
from transformer.interventions import placed
from transformer.model import EncoderDecoder
from transformer.text.pairs import SentencePair
from transformer.text.words import PAD
from transformer.text_model import InputError
from transformer.trace import AttentionTrace, Capture, TokenTrace, trace_of
from transformer.training.data import pad
from transformer.training.distributed import ALONE, Workers
from transformer.translator import Translator
from transformer.view import AuditReport, BoolArray, HeadLabels, HeadView, Window, read_only, site_labels

T = TypeVar("T")
BATCH_POSITIONS = 4096
"""Most positions of a padded batch of texts, and most tokens of a pass with many changes."""
MOST_LOGITS = 1 << 22
"""Logits that are computed at a time."""
CPU_WIDTH = 8
"""On a CPU, batches of an eighth: less padding, and their numbers stay in its caches (*measured*)."""


def in_batches(
    lengths: Sequence[int],  # of the texts, in tokens
    compute: Callable[[list[int]], Iterable[T]],  # places of the texts of a batch → one value for each
    width: int = 1,  # rows a text
    workers: Workers = ALONE,  # the processes that share the batches
    shortest_first: bool = False,
) -> list[T]:
    """A value for each text, computed in batches of texts of similar length, by default the longest first, so
    that a padded batch has at most ``BATCH_POSITIONS`` positions."""
    groups: list[list[int]] = []
    for place in sorted(
        range(len(lengths)), key=lambda place: lengths[place] * (1 if shortest_first else -1)
    ):
        longest = max(lengths[place], lengths[groups[-1][0]]) if groups else 0
        if not groups or (len(groups[-1]) + 1) * longest * width > BATCH_POSITIONS:
            groups.append([])
        groups[-1].append(place)
    values: dict[int, T] = {}
    for places, done in zip(groups, workers.each(lambda group: list(compute(group)), groups), strict=True):
        values |= dict(zip(places, done, strict=True))
    return [values[place] for place in range(len(lengths))]


def translate_batched(
    translator: Translator, texts: Sequence[str], beam_size: int, workers: Workers = ALONE
) -> list[str]:
    """Translations in the order of the texts; the processes share the batches."""
    lengths = [len(translator.ids(text)) + 1 for text in texts]
    return in_batches(
        lengths,
        lambda places: translator.translate_all([texts[place] for place in places], beam_size),
        beam_size,
        workers,
    )


def greedy(translator: Translator, texts: Sequence[str]) -> list[tuple[str, tuple[float, ...]]]:
    """Each text's greedy translation with its tokens' log-probabilities (in nats); InputError if one is empty
    or too long."""

    def compute(places: list[int]) -> list[tuple[str, tuple[float, ...]]]:
        done = translator.hypotheses([texts[place] for place in places], 1)
        return [(translator.text(each.token_ids), each.log_probs) for each in done]

    return in_batches([len(translator.ids(text)) + 1 for text in texts], compute)


def corpus_scores(outputs: Sequence[str], pairs: Sequence[SentencePair]) -> dict[str, Any]:
    """sacreBLEU's BLEU and chrF with their signatures."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    bleu, chrf = BLEU(), CHRF()
    references = [[pair.target for pair in pairs]]
    values = {
        "bleu": round(bleu.corpus_score(list(outputs), references).score, 2),
        "chrf": round(chrf.corpus_score(list(outputs), references).score, 2),
    }
    return values | {"signature": str(bleu.get_signature()), "chrf_signature": str(chrf.get_signature())}


def forced_log_probs(translator: Translator, pairs: Sequence[SentencePair]) -> list[tuple[float, ...]]:
    """For each pair, the log-probability (in nats) of every token of its target, ``</s>`` included.

    As the ``log_probs`` of ``translator.force``, but many pairs a pass: at most ``BATCH_POSITIONS``
    positions, and at most ``MOST_LOGITS`` logits at a time.

    Raises:
        InputError: A text is empty or too long.
        OverflowedError: The model's numbers overflow.
    """
    end = translator.config.eos_id
    sources = [(*translator.ids(pair.source), end) for pair in pairs]
    targets = [translator.written_ids(pair.source, pair.target) for pair in pairs]

    @torch.inference_mode()
    def scored(places: list[int]) -> list[tuple[float, ...]]:
        model, pad_id, written = translator.model, translator.config.pad_id, [targets[i] for i in places]
        state = DecodingState(model, pad([sources[i] for i in places], pad_id).to(translator.device))
        read = pad([(state.config.bos_id, *target[:-1]) for target in written], pad_id).to(state.device)
        # padding is cut off before the logits, which cost the most
        rows = zip(state.features(read), written, strict=True)
        features = torch.cat([row[: len(target)] for row, target in rows])
        ids = torch.tensor([i for target in written for i in target], device=state.device)
        at_once, values = max(1, MOST_LOGITS // state.config.n_target_pieces), list[float]()
        for part, wanted in zip(torch.split(features, at_once), torch.split(ids, at_once), strict=True):
            log_probs = model.logits(part).float().log_softmax(-1).gather(1, wanted[:, None])
            values += numbers(log_probs)[:, 0].tolist()
        rest = iter(values)
        return [tuple(islice(rest, len(target))) for target in written]

    lengths = [max(map(len, both)) for both in zip(sources, targets, strict=True)]
    width = CPU_WIDTH if translator.device.type == "cpu" else 1
    return in_batches(lengths, lambda places: translator.computed(partial(scored, places)), width)


@dataclass(frozen=True, eq=False)
class BatchEntry:
    """One sentence of a padded batch, as the model saw it."""

    source_tokens: tuple[str, ...]  # pieces with ``<pad>`` up to the longest source
    decoder_input_tokens: tuple[str, ...]  # what the decoder read, with ``<pad>`` up to the longest target
    target_tokens: tuple[str, ...]  # what the decoder predicted, padded likewise
    source_mask: BoolArray  # (source,) bool, True for tokens
    target_mask: BoolArray  # (target,) bool, True for tokens of the decoder input
    attention: AttentionTrace  # the trace of this sentence
    model: str  # name of the model
    config: ModelConfig

    def head(
        self, kind: AttentionKind | str, layer: int, head: int, window: Window | None = None
    ) -> HeadView:
        """One head, with the padding in its mask; raises the errors of ``Translation.head``."""
        kind = AttentionKind(kind)
        provenance = self.model, self.config.norm
        return head_view(self.attention, (kind, layer, head), self.labels(kind), provenance, window)

    def labels(self, kind: AttentionKind | str) -> HeadLabels:
        """The tokens along the maps of one kind, padding included."""
        site = self.config.sites[AttentionKind(kind)]
        return site_labels(site, self.source_tokens, self.decoder_input_tokens, self.target_tokens)


@torch.inference_mode()
def run_batch(translator: Translator, texts: Sequence[str]) -> tuple[BatchEntry, ...]:
    """Translates texts greedily in one padded batch, then records one teacher-forced pass over all of them.

    The decoder runs as in training: all rows at once under the causal mask. This mask already hides the
    padding at the end of a target; in cross-attention the padding of the source is masked.

    InputError if a text is empty or too long, or the texts ask for several languages.
    """
    config, model, device = translator.config, translator.model, translator.device
    sources = [(*translator.ids(text), config.eos_id) for text in texts]
    source = pad(sources, config.pad_id).to(device)
    hooks = Hooks(Capture().parts)
    state = DecodingState(model, source, hooks)
    rules, *others = [translator.rules_for(text) for text in texts]
    if any(each != rules for each in others):
        raise InputError("The texts of a batch ask for several languages; let all of them ask for one.")
    hypotheses = finish(decode(state, [translator.limit(len(row)) for row in sources], rules=rules))
    written = pad([each.token_ids for each in hypotheses], config.pad_id).to(device)
    read = pad([(config.bos_id, *each.token_ids[:-1]) for each in hypotheses], config.pad_id).to(device)
    distribution = model.logits(state.features(read, hooks)).float().log_softmax(-1)
    known = written.clamp(max=config.n_target_pieces - 1)  # padding may be no piece
    log_probs = distribution.gather(2, known[..., None])[..., 0].tolist()
    rows = zip(source, read, written, hypotheses, log_probs, strict=True)
    return tuple(_entry(translator, hooks, i, row[:3], *row[3:]) for i, row in enumerate(rows))


def _entry(
    translator: Translator,
    hooks: Hooks,
    row: int,
    ids: tuple[Tensor, Tensor, Tensor],  # of the row: what the encoder and the decoder read, what was written
    hypothesis: Hypothesis,
    log_probs: list[float],  # of every output token, from the recorded pass
) -> BatchEntry:
    decoded, config = hypothesis.log_probs, translator.config

    def auditor(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
        return audit(trace, places, decoded, tuple(log_probs[: len(decoded)]), translator.model)

    def padded(pieces: Sequence[str], mask: BoolArray) -> tuple[str, ...]:
        return tuple(piece if token else PAD for piece, token in zip(pieces, mask, strict=True))

    source_mask = read_only(token_mask(ids[0], config.pad_id).cpu()).astype(bool)
    target_mask = np.arange(len(ids[1])) < len(decoded)
    source = padded(translator.source_pieces(ids[0].tolist()), source_mask)
    read, written = (padded(translator.pieces(each.tolist()), target_mask) for each in ids[1:])
    sides = zip(("encoder", "decoder", "written"), ids, (source, read, written), strict=True)
    tokens = {side: TokenTrace(tuple(each.tolist()), pieces) for side, each, pieces in sides}
    trace = trace_of(hooks, config, auditor, row, tokens=tokens)
    assert trace is not None
    return BatchEntry(source, read, written, source_mask, target_mask, trace, translator.name, config)


class Swap(NamedTuple):
    """A vector that stands in the place of the model's own."""

    place: str  # where, as for ``interventions.patch``
    vector: Tensor  # (width,) what stands there; without a position also (length, width)
    position: int | None = None  # the position that it stands at, from 0; None for all

    @property
    def side(self) -> Side:
        """The first stack that computes something else."""
        return placed(self.place)["side"]


def swapped(runs: Sequence[Sequence[Swap]]) -> dict[str, list[Edit]]:
    """Edits that give each row of a batch the vectors of its own run."""
    by_place: dict[str, list[tuple[int, Swap]]] = {}
    for row, swaps in enumerate(runs):
        for swap in swaps:
            by_place.setdefault(swap.place, []).append((row, swap))
    edits: dict[str, list[Edit]] = {}
    for place, rows in by_place.items():
        edits.setdefault(placed(place)["hook"], []).append(_swap(placed(place)["head"], rows))
    return edits


def _swap(head: str | None, swaps: Sequence[tuple[int, Swap]]) -> Edit:
    def edit(own: Tensor, at: At) -> Tensor:
        changed = own.clone()
        part = changed if head is None else changed[:, int(head)]
        for row, swap in swaps:
            part[row, slice(None) if swap.position is None else swap.position] = swap.vector.to(own)
        return changed

    return edit


class Differing(Protocol):
    """Something that differs in a run: ``Swap``, or a cut of a key."""

    @property
    def side(self) -> Side:
        """The first stack that computes something else."""


class Passes:
    """Forced passes over one source and one target, each row of a pass with changes of its own.

    If hundreds of runs differ in one vector each, running them one by one would spend most of the time on
    calls; here a pass takes as many rows as fit.
    """

    def __init__(
        self,
        model: EncoderDecoder,  # in ``eval()`` mode
        src_ids: Sequence[int],  # the source as the model reads it, ``</s>`` included
        target_ids: Sequence[int],  # the output
        edits: Callable[[Any], Mapping[str, Sequence[Edit]]],  # of the changes of each row of a pass
        most_tokens: int = BATCH_POSITIONS,  # tokens of a pass: rows × the longer of source and target
    ) -> None:
        self._model, device = model, model.embedding.weight.device
        self._edits, self._most_tokens = edits, most_tokens
        self._source = torch.tensor([src_ids], device=device)
        self._read = torch.tensor([[model.config.bos_id, *target_ids[:-1]]], device=device)
        self._written = torch.tensor(target_ids, device=device)
        with torch.inference_mode():
            self._memory = model.encode(self._source)

    def log_probs(self, runs: Sequence[Sequence[Differing]]) -> Tensor:
        """(runs, target) float32: the log-probability of each target token in each run, in nats."""
        parts = list(self.parts(runs))
        return torch.cat(parts) if parts else torch.zeros(0, len(self._written))

    def parts(self, runs: Sequence[Sequence[Differing]]) -> Iterator[Tensor]:
        """As ``log_probs``, but yields the rows of each pass at once."""
        rows = max(1, self._most_tokens // max(self._source.shape[1], self._read.shape[1]))
        for start in range(0, len(runs), rows):
            yield self._pass(runs[start : start + rows])

    @torch.inference_mode()
    def _pass(self, runs: Sequence[Sequence[Differing]]) -> Tensor:
        hooks, count = Hooks((), self._edits(runs)), len(runs)
        if any(each.side == "encoder" for changes in runs for each in changes):
            memory = self._model.encode(self._source.expand(count, -1), hooks=hooks)
        else:
            memory = self._memory.expand(count, -1, -1)
        features = self._model.decode(self._read.expand(count, -1), memory, hooks=hooks)
        at_once = max(1, MOST_LOGITS // (self._read.shape[1] * self._model.config.n_target_pieces))
        return torch.cat([self._of_target(part) for part in torch.split(features, at_once)]).cpu()

    def _of_target(self, features: Tensor) -> Tensor:
        """(rows, target, d_model) → (rows, target) log-probabilities of the target's tokens."""
        logits = self._model.logits(features).float()
        written = self._written.expand(len(logits), -1)[..., None]
        return logits.gather(-1, written)[..., 0] - logits.logsumexp(-1)
