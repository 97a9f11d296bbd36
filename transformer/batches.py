"""Many texts at once in padded batches: translated, scored, recorded."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor

from transformer.decoding import AnyModel, Hypothesis, finish, numbers
from transformer.hooks import Capture
from transformer.reader import InputError
from transformer.requests import Request, begin
from transformer.run import Translation
from transformer.text.pairs import SentencePair
from transformer.trace import TokenTrace
from transformer.training.distributed import ALONE, Workers
from transformer.translator import Translator

T = TypeVar("T")
BATCH_POSITIONS = 4096
"""Most positions of a padded batch of texts, and most tokens of a pass with many changes."""
MOST_LOGITS = 1 << 22
"""Logits that are computed at a time."""
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
    rules = {each: i for i, each in enumerate(dict.fromkeys(each.rules for each in requests))}
    kinds = [
        (rules[request.rules], -max(len(request.source_ids), request.given)) for request in requests
    ]
    groups = list[list[int]]()
    values = dict[int, T]()
    for place in sorted(range(len(requests)), key=kinds.__getitem__):
        (own, _) = kinds[place]
        (other, longest) = kinds[groups[-1][0]] if groups else (-1, 0)
        if own != other or (len(groups[-1]) + 1) * -longest * width > BATCH_POSITIONS:
            groups.append([])
        groups[-1].append(place)

    def of_batch(places: list[int]) -> Iterable[T]:
        for i in places:
            requests[i].model = translator.model  # which may have left its GPU
        return compute([requests[i] for i in places])

    work = workers.shared_map(
        lambda group: list(translator.computed(lambda: of_batch(group))), groups
    )
    for places, done in zip(groups, work, strict=True):
        values |= dict(zip(places, done, strict=True))
    return [values[place] for place in range(len(requests))]


def _requests(translator: Translator, texts: Sequence[str], **options: int | None) -> list[Request]:
    """ValueError if the model continues texts instead of translating them."""
    if translator.continues:
        raise ValueError(
            "This model continues texts one at a time; only translations are made in batches."
        )
    return [Request(translator, text, **options) for text in texts]  # type: ignore[arg-type]


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
        return finish(group[0].search(begin(group)[0], [each.limit for each in group]))

    wanted = _requests(translator, texts, beam_size=beam_size, max_length=max_length)
    rows = max((each.beam_size for each in wanted), default=1)
    return in_batches(translator, wanted, searched, rows, workers)


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
    parts = zip(torch.split(features, at_once), torch.split(ids, at_once), strict=True)
    return torch.cat(
        [model.logits(part).float().log_softmax(1).gather(1, i[:, None])[:, 0] for part, i in parts]
    )


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
        state = begin(group)[0]
        written = [each.output.ids for each in group if each.output]
        # padding is cut off before the logits, which cost the most
        rows = zip(state.read(written), written, strict=True)
        features = torch.cat([row[: len(target)] for row, target in rows])
        ids = torch.tensor([i for target in written for i in target], device=state.device)
        rest = iter(numbers(token_log_probs(state.model, features, ids)[:, None])[:, 0].tolist())
        return [tuple(islice(rest, len(target))) for target in written]

    texts = [("", pair) if isinstance(pair, str) else (pair.source, pair.target) for pair in pairs]
    wanted = [Request(model, source, model.output(target, source)) for source, target in texts]
    return in_batches(model, wanted, scored, CPU_WIDTH if model.device.type == "cpu" else 1)


@torch.inference_mode()
def run_batch(translator: Translator, texts: Sequence[str]) -> tuple[Translation, ...]:
    """Translates texts greedily in one padded batch, then records one teacher-forced pass over all
    of them.

    Each run is as the model saw it: its tokens have ``<pad>`` up to the longest text, its steps and
    log-probabilities end before. The decoder runs as in training: all rows at once under the causal
    mask, which already hides the padding at the end of a target; cross-attention masks that of the
    source.

    InputError if a text is empty or too long, or the texts ask for several languages.
    """
    wanted = _requests(translator, texts, beam_size=1)
    runs = list[Translation]()
    if len({each.rules for each in wanted}) > 1:
        raise InputError(
            "The texts of a batch ask for several languages; let all of them ask for one."
        )
    if not wanted:
        return ()
    state, hooks = begin(wanted, Capture(), in_beam=True)
    outputs = finish(wanted[0].search(state, [each.limit for each in wanted]))
    passed = state.forced([each.token_ids for each in outputs], hooks)
    lengths = {"encoder": max(len(each.source_ids) for each in wanted)}
    lengths |= dict.fromkeys(("decoder", "written"), passed.shape[1])
    for row, (request, output) in enumerate(zip(wanted, outputs, strict=True)):
        own = passed[row, : len(output.token_ids)], hooks
        run = request.replayed(output.token_ids, output.log_probs, "greedy", own, row)
        tokens = dict[str, TokenTrace]()
        for side, each in run.trace.tokens.items():  # filled up to the lengths of the batch
            more = lengths[side] - len(each.ids)
            padding = [request.config.pad_id] * more
            ids = (*each.ids, *padding)
            pieces = (*each.pieces, *request.named(padding))
            tokens[side] = replace(each, ids=ids, pieces=pieces)
        source, read, written = (tokens[side].pieces for side in lengths)
        labels = {"source_tokens": source, "decoder_input_tokens": read, "target_tokens": written}
        trace = replace(run.trace, tokens=tokens)
        runs.append(replace(run, attention=trace, **labels))  # type: ignore[arg-type]
    return tuple(runs)
