"""Translates many texts in batches, and scores them with sacreBLEU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformer.text.pairs import SentencePair
from transformer.translate.translator import Translator

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


def translate_batched(translator: Translator, texts: Sequence[str], beam_size: int) -> list[str]:
    """Translations in the order of the texts, computed in padded batches of texts of similar length."""
    lengths = [len(translator.ids(text)) + 1 for text in texts]
    outputs = [""] * len(texts)
    batch: list[int] = []
    for place in sorted(range(len(texts)), key=lambda place: -lengths[place]):
        if batch and (len(batch) + 1) * lengths[batch[0]] * beam_size > BATCH_POSITIONS:
            _translate_into(outputs, translator, texts, batch, beam_size)
            batch = []
        batch.append(place)
    _translate_into(outputs, translator, texts, batch, beam_size)
    return outputs


def _translate_into(
    outputs: list[str], translator: Translator, texts: Sequence[str], places: Sequence[int], beam_size: int
) -> None:
    translated = translator.translate_all([texts[place] for place in places], beam_size=beam_size)
    for place, text in zip(places, translated, strict=True):
        outputs[place] = text
