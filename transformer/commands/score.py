"""`python -m transformer score`: log-probabilities of given translations, one line a pair."""

from collections import Counter
from collections.abc import Iterator
from functools import partial

from transformer.batches import forced_log_probs
from transformer.commands.lines import answer_pairs, unread, warn_unread
from transformer.commands.models import Json, TranslatorOptions
from transformer.text.pairs import SentencePair

EMPTY: Json = {"log_prob": None, "tokens": 0, "mean": None}


def score(*, model: TranslatorOptions, data: str, tokens: bool = False) -> int:
    """Log p of given translations, one line a pair: its sum in nats, tokens, mean.

    A line is blank where the file's is blank or cannot be used.

    data [FILE]: source<TAB>translation lines (.gz too)
    tokens: also the tokens, and the log p of each
    """
    translator = model.open()
    missing = Counter[str]()

    def check(pair: SentencePair) -> None:
        missing.update(unread(translator, pair.source, pair.target))

    def answers(pairs: list[SentencePair]) -> Iterator[tuple[Json, str]]:
        for pair, log_probs in zip(pairs, forced_log_probs(translator, pairs), strict=True):
            total = sum(log_probs)
            count = len(log_probs)
            values: Json = {
                "log_prob": round(total, 6),
                "tokens": count,
                "mean": round(total / count, 6),
            }
            columns = [f"{total:.6f}", str(count), f"{total / count:.6f}"]
            if tokens:
                pieces = translator.pieces(translator.output(pair.target, pair.source).ids)
                values |= {
                    "target_tokens": pieces,
                    "log_probs": [round(value, 6) for value in log_probs],
                }
                columns += [" ".join(pieces), " ".join(f"{value:.6f}" for value in log_probs)]
            yield values, "\t".join(columns)

    status = answer_pairs(data, check, answers, EMPTY, partial(model.write, translator))
    warn_unread(missing)
    return status
