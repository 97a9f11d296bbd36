"""Many texts at once in padded batches: translated, scored, recorded."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor

from transformer.decoding import MOST_LOGITS, AnyModel, Hypothesis, finish, numbers, pad
from transformer.hooks import Capture
from transformer.reader import READS_ONLY, InputError, Reader
from transformer.requests import Request, begin
from transformer.run import Translation
from transformer.text.pairs import SentencePair
from transformer.trace import TokenTrace, hooks_of
from transformer.training.distributed import ALONE, Workers
from transformer.translator import Translator

T = TypeVar("T")
BATCH_POSITIONS = 4096
"""Most positions of a padded batch of texts, and most tokens of a pass with many changes."""
CPU_WIDTH = 8
"""On a CPU, scored batches of an eighth: less padding, and their numbers stay in its caches
(*measured*)."""


def in_batches(
    translator: Translator,
    requests: Sequence[Request],
    compute: Callable[[list[Request]], Iterable[T]],  # of a batch → one value for each
    width: int = 1,  # rows a text
    workers: Workers = ALONE,  # the processes that share the batches
) -> list[T]:
    """A value for each text, computed in batches of texts with the same rules and of similar
    length, the longest first, so that a padded batch has at most ``BATCH_POSITIONS`` positions."""
    groups = _alike(requests, width)

    def of_batch(group: list[int]) -> Iterable[T]:
        for i in group:
            requests[i].model = translator.model  # which may have left its GPU
        return compute([requests[i] for i in group])

    def computed(group: list[int]) -> list[T]:
        return list(translator.computed(lambda: of_batch(group)))

    values = dict[int, T]()
    for group, of_group in zip(groups, workers.shared_map(computed, groups), strict=True):
        values |= dict(zip(group, of_group, strict=True))
    return [values[i] for i in range(len(requests))]


def _alike(requests: Sequence[Request], width: int) -> list[list[int]]:
    """Numbers of the requests in batches: of the same rules, the longest first."""
    rule_numbers = {
        rules: number
        for number, rules in enumerate(dict.fromkeys(request.rules for request in requests))
    }
    rules_of = [rule_numbers[request.rules] for request in requests]
    lengths = [max(len(request.source_ids), request.given) for request in requests]
    groups = list[list[int]]()
    for i in sorted(range(len(requests)), key=lambda i: (rules_of[i], -lengths[i])):
        if groups:
            first = groups[-1][0]
            n_positions = (len(groups[-1]) + 1) * lengths[first] * width
            fits = rules_of[first] == rules_of[i] and n_positions <= BATCH_POSITIONS
        else:
            fits = False
        if fits:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _requests(
    translator: Translator,
    texts: Sequence[str],
    beam_size: int | None = None,
    max_length: int | None = None,
) -> list[Request]:
    """ValueError if the model continues texts instead of translating them, or writes none."""
    if translator.continues:
        raise ValueError(
            "This model continues texts one at a time; only translations are made in batches."
        )
    if not translator.config.writes:
        raise ValueError(READS_ONLY)
    return [Request(translator, text, beam_size=beam_size, max_length=max_length) for text in texts]


def hypotheses(
    translator: Translator,
    texts: Sequence[str],
    beam_size: int | None = None,
    max_length: int | None = None,
    workers: Workers = ALONE,  # the processes that share the batches
) -> list[Hypothesis]:
    """The outputs of many texts in their order, without capture; options and errors as in
    ``translate``."""

    def searched(group: list[Request]) -> tuple[Hypothesis, ...]:
        (state, _) = begin(group)
        return finish(group[0].search(state, [request.limit for request in group]))

    requests = _requests(translator, texts, beam_size=beam_size, max_length=max_length)
    rows = max((request.beam_size for request in requests), default=1)
    return in_batches(translator, requests, searched, rows, workers)


def translate_all(
    translator: Translator,
    texts: Sequence[str],
    beam_size: int | None = None,
    max_length: int | None = None,
    workers: Workers = ALONE,
) -> list[str]:
    """The texts of ``hypotheses``."""
    outputs = hypotheses(translator, texts, beam_size, max_length, workers)
    return [translator.text(output.token_ids) for output in outputs]


def token_log_probs(model: AnyModel, features: Tensor, ids: Tensor) -> Tensor:
    """(rows, d_model), (rows,) ids → (rows,) float32 log-probabilities of the ids, some logits at a
    time."""
    at_once = max(1, MOST_LOGITS // model.config.n_target_pieces)
    log_probs = list[Tensor]()
    for rows, row_ids in zip(
        torch.split(features, at_once), torch.split(ids, at_once), strict=True
    ):
        distribution = model.logits(rows).float().log_softmax(1)
        log_probs.append(distribution.gather(1, row_ids[:, None])[:, 0])
    return torch.cat(log_probs)


def forced_log_probs(
    model: Translator,
    pairs: Sequence[SentencePair | str],  # with a language model, whole texts
) -> list[tuple[float, ...]]:
    """For each pair, the log-probability (in nats) of every token of its target, ``</s>`` included.

    As the ``log_probs`` of ``force``, but many pairs a pass: at most ``BATCH_POSITIONS`` positions,
    and ``MOST_LOGITS`` logits at a time.

    Raises:
        InputError: A text is empty or too long.
        OverflowedError: The model's numbers overflow.
    """

    @torch.inference_mode()
    def scored(group: list[Request]) -> list[tuple[float, ...]]:
        (state, _) = begin(group)
        targets = [request.output.ids for request in group if request.output]
        # padding is cut off before the logits, which cost the most
        rows = zip(state.read(targets), targets, strict=True)
        features = torch.cat([row[: len(target)] for row, target in rows])
        ids = torch.tensor([i for target in targets for i in target], device=state.device)
        log_probs = token_log_probs(state.model, features, ids)
        rest = iter(numbers(log_probs[:, None])[:, 0].tolist())
        return [tuple(islice(rest, len(target))) for target in targets]

    texts = [("", pair) if isinstance(pair, str) else (pair.source, pair.target) for pair in pairs]
    requests = [Request(model, source, model.output(target, source)) for source, target in texts]
    width = CPU_WIDTH if model.device.type == "cpu" else 1
    return in_batches(model, requests, scored, width)


@torch.inference_mode()
def run_batch(translator: Translator, texts: Sequence[str]) -> tuple[Translation, ...]:
    """Translates texts greedily in one padded batch, then records one teacher-forced pass over all
    of them.

    Each run is as the model saw it: its tokens have padding up to the longest text, its steps and
    log-probabilities end before. The decoder runs as in training: all rows at once under the causal
    mask, which already hides the padding at the end of a target; cross-attention masks that of the
    source.

    InputError if a text is empty or too long, or the texts ask for several languages.
    """
    if not translator.config.writes:
        return _read_batch(translator, [Request(translator, text) for text in texts])
    requests = _requests(translator, texts, beam_size=1)
    if len({request.rules for request in requests}) > 1:
        raise InputError(
            "The texts of a batch ask for several languages; let all of them ask for one."
        )
    if not requests:
        return ()
    (state, hooks) = begin(requests, Capture(), in_beam=True)
    outputs = finish(requests[0].search(state, [request.limit for request in requests]))
    distributions = state.forced([output.token_ids for output in outputs], hooks)
    lengths = {
        "encoder": max(len(request.source_ids) for request in requests),
        "decoder": distributions.shape[1],
        "written": distributions.shape[1],
    }
    runs = list[Translation]()
    for row, (request, output) in enumerate(zip(requests, outputs, strict=True)):
        of_row = distributions[row, : len(output.token_ids)], hooks
        run = request.replayed(output.token_ids, output.log_probs, "greedy", of_row, row)
        runs.append(_padded(run, translator, lengths))
    return tuple(runs)


@torch.inference_mode()
def _read_batch(translator: Translator, requests: Sequence[Request]) -> tuple[Translation, ...]:
    """The runs of texts that an encoder alone reads in one padded batch."""
    if not requests:
        return ()
    config = translator.config
    ids = pad([request.source_ids for request in requests], config.pad_id).to(translator.device)
    hooks = hooks_of(config, Capture())
    features = translator.model.read({"encoder": ids}, hooks)
    lengths = {"encoder": ids.shape[1]}
    return tuple(
        _padded(request.read((features[row], hooks), row), translator, lengths)
        for row, request in enumerate(requests)
    )


def _padded(run: Translation, reader: Reader, lengths: Mapping[str, int]) -> Translation:
    """A run of a batch whose tokens are filled up to the lengths of the batch, by what was read."""
    pad_id = run.config.pad_id
    tokens = dict[str, TokenTrace]()
    for read, trace in run.trace.tokens.items():
        padding = [pad_id] * (lengths[read] - len(trace.ids))
        pieces = reader.pieces(padding, "source" if read == "encoder" else "target")
        tokens[read] = replace(trace, ids=(*trace.ids, *padding), pieces=(*trace.pieces, *pieces))
    read_pieces = {read: trace.pieces for read, trace in tokens.items()}
    return replace(
        run,
        attention=replace(run.trace, tokens=tokens),
        source_tokens=read_pieces["encoder"],
        decoder_input_tokens=read_pieces.get("decoder", ()),
        target_tokens=read_pieces.get("written", ()),
    )
