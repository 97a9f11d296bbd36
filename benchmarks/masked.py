"""How well an encoder alone predicts masked pieces: `python -m benchmarks masked --model DIR --text
FILE --training FILE`."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np

from transformer import load_encoder
from transformer.reader import InputError
from transformer.run import DecodeStep
from transformer.text.pairs import read_lines
from transformer.text.words import is_special
from transformer.translator import Translator

RANKS = 1, 5, 10
RESAMPLED = 1_000
"""How often sentences are drawn again for an interval."""


def masked(
    *,
    model: Annotated[Path, "DIR", "an encoder that predicts masked words"],
    text: Annotated[Path, "FILE", "sentences that it never read"],
    training: Annotated[Path, "FILE", "those that it learned from, for the reference"],
    sentences: Annotated[int, "how many are read"] = 500,
) -> int:
    """Mask each piece of some sentences in turn, and count how often the model finds it.

    The reference always says the most frequent pieces of the training text, with their frequencies.
    """
    encoder = load_encoder(model)
    counts = Counter[int](
        number
        for _, line in islice(read_lines(training), 0, None, 20)
        for number in encoder.tokenizer.source.encode(line)
    )
    by_frequency = [number for number, _ in counts.most_common(max(RANKS))]
    found = list[list[list[float]]]()  # of each sentence, of each piece: hits by rank, bits
    usual = list[list[list[float]]]()
    total = counts.total() + encoder.config.vocab_size
    for _, line in islice(read_lines(text), sentences):
        steps = list(_predicted(encoder, line))
        if not steps:  # it is too long
            continue
        found.append([_counted(step) for step in steps])
        usual.append(
            [
                [
                    *(float(step.token_id in by_frequency[:rank]) for rank in RANKS),
                    -math.log2((counts[step.token_id] + 1) / total),
                ]
                for step in steps
            ]
        )
    pieces = sum(map(len, found))
    print(f"{len(found)} sentences, {pieces:,} pieces, each masked in turn, {encoder.name}")
    names = [*(f"among the first {rank}" for rank in RANKS), "bits a piece"]
    for place, name in enumerate(names):
        value, low, high = _interval([[row[place] for row in rows] for rows in found])
        reference, *_ = _interval([[row[place] for row in rows] for rows in usual])
        print(f"{name}: {value:.3f} [{low:.3f}, {high:.3f}]; frequencies alone {reference:.3f}")
    return 0


def _predicted(encoder: Translator, line: str) -> Iterator[DecodeStep]:
    """What the model predicts for each ordinary piece of a sentence, masked by itself."""
    try:
        run = encoder.fill(line, capture=False)
    except InputError:
        return
    assert run.predict is not None
    ordinary = [i for i, piece in enumerate(run.source_tokens) if not is_special(piece)]
    yield from run.predict(ordinary).values()


def _counted(step: DecodeStep) -> list[float]:
    """Whether the piece is among the first of each rank, and its bits."""
    ids = [alternative.token_id for alternative in step.alternatives]
    hits = [float(step.token_id in ids[:rank]) for rank in RANKS]
    return [*hits, -step.log_prob / math.log(2)]


def _interval(sentences: Iterable[list[float]]) -> tuple[float, float, float]:
    """The mean over all pieces, and where 95 % of the means of redrawn sentences lie."""
    values = list(sentences)
    sums = np.array([sum(rows) for rows in values])
    counts = np.array([len(rows) for rows in values])
    draw = np.random.default_rng(0)
    chosen = draw.integers(0, len(values), (RESAMPLED, len(values)))
    means = sums[chosen].sum(1) / counts[chosen].sum(1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(sums.sum() / counts.sum()), float(low), float(high)
