"""`python -m transformer score`: log-probabilities of given translations, one line a pair."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from transformer.batches import forced_log_probs
from transformer.commands.arguments import Json, model_command, open_model, told, write
from transformer.commands.lines import pair_parts, unread, warn_unread
from transformer.text.pairs import SentencePair
from transformer.translator import Translator

EMPTY: Json = {"log_prob": None, "tokens": 0, "mean": None}


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "log p of given translations, one line a pair: its sum in nats, tokens, mean"
    parser = model_command(commands, "score", score, text)
    parser.add_argument(
        "--data", required=True, metavar="FILE", help="source<TAB>translation lines (.gz too)"
    )
    parser.add_argument("--tokens", action="store_true", help="also the tokens, and the log p of each")


def score(arguments: argparse.Namespace) -> int:
    """`score`: prints one line for each line of the file, blank where it is blank or cannot be used."""
    translator, bad, missing = open_model(arguments), list[str](), Counter[str]()

    def check(pair: SentencePair) -> None:
        missing.update(unread(translator, pair.source, pair.target))

    for part in pair_parts(arguments.data, check):
        pairs = [line.pair for line in part if line.pair is not None]
        found = zip(pairs, forced_log_probs(translator, pairs), strict=True)
        for line in part:
            if line.pair is None:
                bad += [line.error] if line.error else []
                write(arguments, EMPTY | ({"error": line.error} if line.error else {}), "")
            else:
                _write(arguments, translator, *next(found))
    warn_unread(missing)
    return told(bad)


def _write(
    arguments: argparse.Namespace, translator: Translator, pair: SentencePair, log_probs: tuple[float, ...]
) -> None:
    total, count = sum(log_probs), len(log_probs)
    values: Json = {"log_prob": round(total, 6), "tokens": count, "mean": round(total / count, 6)}
    columns = [f"{total:.6f}", str(count), f"{total / count:.6f}"]
    if arguments.tokens:
        pieces = translator.pieces(translator.output(pair.target, pair.source).ids)
        each = [round(value, 6) for value in log_probs]
        values |= {"target_tokens": pieces, "log_probs": each}
        columns += [" ".join(pieces), " ".join(f"{value:.6f}" for value in each)]
    write(arguments, values, "\t".join(columns))
