"""`python -m transformer evaluate`: scores the translations of a file with sacreBLEU."""

import time
from collections import Counter
from collections.abc import Sequence

from transformer.batches import BATCH_POSITIONS, translate_all
from transformer.commands.lines import unread, warn_unread
from transformer.commands.models import BeamOptions, Json, TranslatorOptions
from transformer.reader import InputError
from transformer.text.pairs import DataError, SentencePair, read_pairs
from transformer.text.tokenizer import Tokenizer
from transformer.training.data import encode_pairs
from transformer.training.loss import evaluate_loss


def evaluate(*, model: TranslatorOptions, data: str, beam: BeamOptions) -> int:
    """Translate a file and score it with sacreBLEU.

    The loss is in nats per token; there is none if the vocabulary is not one of this package.

    data [FILE]: source<TAB>target lines (.gz too)
    """
    pairs = read_pairs(data)
    loss = None
    with model.open_in_job(beam) as (translator, workers):
        missing = Counter[str]()
        for pair in pairs:
            try:
                missing.update(unread(translator, pair.source, pair.target))
            except InputError as error:
                raise DataError(f"{data}:{pair.line}: {error}") from error
        if workers.first:
            warn_unread(missing)
        started = time.perf_counter()
        sources = [pair.source for pair in pairs]
        outputs = translate_all(translator, sources, beam.beam_size, workers=workers)
        seconds = time.perf_counter() - started
        tokens = sum(len(translator.tokenizer.target.encode(output)) + 1 for output in outputs)
        if isinstance(translator.tokenizer, Tokenizer):
            encoded = encode_pairs(pairs, translator.tokenizer)
            exact = evaluate_loss(translator.translating, encoded, BATCH_POSITIONS, workers=workers)
            loss = round(exact, 4)
        if not workers.first:
            return 0
    scores = corpus_scores(outputs, pairs)
    speed = round(tokens / seconds, 1)
    lines = [f"BLEU {scores['bleu']:.2f}   {scores['signature']}"]
    lines += [f"chrF {scores['chrf']:.2f}   {scores['chrf_signature']}"]
    lines += [] if loss is None else [f"loss {loss:.3f} nats per token"]
    lines += [f"{speed:,.0f} target tokens/s, {len(pairs):,} sentences"]
    values = scores | {"loss": loss, "tokens_per_second": speed}
    values |= {"sentences": len(pairs), "beam_size": beam.beam_size}
    model.write(translator, values, "\n".join(lines))
    return 0


def corpus_scores(outputs: Sequence[str], pairs: Sequence[SentencePair]) -> Json:
    """sacreBLEU's BLEU and chrF with their signatures."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    bleu = BLEU()
    chrf = CHRF()
    references = [[pair.target for pair in pairs]]
    values = {
        "bleu": round(bleu.corpus_score(list(outputs), references).score, 2),
        "chrf": round(chrf.corpus_score(list(outputs), references).score, 2),
    }
    return values | {
        "signature": str(bleu.get_signature()),
        "chrf_signature": str(chrf.get_signature()),
    }
