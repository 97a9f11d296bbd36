"""Translates many texts in batches, and scores them with sacreBLEU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from transformer.runs.translator import Translator
from transformer.text.pairs import SentencePair
from transformer.training.distributed import ALONE, Workers

Json = dict[str, Any]

BATCH_POSITIONS = 4096


def corpus_scores(outputs: Sequence[str], pairs: Sequence[SentencePair]) -> Json:
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


def translate_batched(
    translator: Translator,  # the model
    texts: Sequence[str],  # the texts
    beam_size: int,  # the beam width; 1 is greedy
    workers: Workers = ALONE,  # the processes that share the batches
) -> list[str]:
    """Translations in the order of the texts, computed in padded batches of texts of similar length."""

    def translate(places: list[int]) -> list[str]:
        return translator.translate_all([texts[place] for place in places], beam_size=beam_size)

    outputs = [""] * len(texts)
    grouped = list(batches([len(translator.ids(text)) + 1 for text in texts], beam_size))
    for places, translated in zip(grouped, workers.each(translate, grouped), strict=True):
        for place, text in zip(places, translated, strict=True):
            outputs[place] = text
    return outputs


def greedy(translator: Translator, texts: Sequence[str]) -> list[tuple[str, tuple[float, ...]]]:
    """Each text's greedy translation with its tokens' log-probabilities (in nats), computed in batches.

    Raises:
        InputError: A text is empty or too long.
    """
    found: list[tuple[str, tuple[float, ...]]] = [("", ())] * len(texts)
    for places in batches([len(translator.ids(text)) + 1 for text in texts]):
        done = translator.hypotheses([texts[place] for place in places], 1)
        for place, hypothesis in zip(places, done, strict=True):
            found[place] = translator.text(hypothesis.token_ids), hypothesis.log_probs
    return found


def batches(lengths: Sequence[int], width: int = 1, shortest_first: bool = False) -> Iterator[list[int]]:
    """Places of texts of similar length, by default the longest first, so that a padded batch of ``width``
    rows a text has at most ``BATCH_POSITIONS`` positions."""
    batch: list[int] = []
    sign = 1 if shortest_first else -1
    for place in sorted(range(len(lengths)), key=lambda place: sign * lengths[place]):
        longest = max(lengths[each] for each in (*batch[:1], place))
        if batch and (len(batch) + 1) * longest * width > BATCH_POSITIONS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
