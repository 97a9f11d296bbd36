"""Links read from cross-attention: of the words of any pair by one aligner, of gold pairs by every
head."""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.lenses.words.alignment import (
    Aligner,
    AlignmentScore,
    agreement,
    diagonal,
    error_rate,
    link_words,
    word_weights,
)
from explorer.lenses.words.links import GoldPair, Links
from explorer.lenses.words.reading import Rows, merge_words
from transformer.config import AttentionKind, ModelConfig
from transformer.text.pairs import DataError
from transformer.text.words import Group
from transformer.training.distributed import ALONE, Workers
from transformer.translator import Translator


class Linker(NamedTuple):
    """A model and the aligner that reads its cross-attention."""

    translator: Translator  # the model
    aligner: Aligner  # its head, or the mean of several

    def links(self, source: str, target: str) -> Links:
        """Each target word's link to its strongest source word, the target forced; as
        ``typed_words``."""
        words, wanted = typed_words(self.translator, source, target)
        weights = self.aligner.weights(self.translator.force(_spaced(source), _spaced(target)))
        return link_words(merge_words(weights, wanted, words)[None])[0]


def typed_words(
    translator: Translator, source: str, target: str, place: str = ""
) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
    """The pieces of each typed word of a pair; InputError for its length, DataError if one draws
    nothing."""
    words = (
        translator.cut(_spaced(source)).groups(),
        translator.cut(_spaced(target), "target").groups(),
    )
    if tuple(map(len, words)) != (len(source.split()), len(target.split())):
        begin = f"{place}: a" if place else "A"
        raise DataError(f"{begin} word of this pair has no visible character; its links count it.")
    return words


def _spaced(text: str) -> str:
    """The words of a text between single spaces."""
    return " ".join(text.split())


def shipped_aligner(translator: Translator) -> Aligner:
    """The best aligner that the model's ``heads.json`` names; ValueError if it names none."""
    known = (translator.heads or {}).get("aligner")
    if known is None:
        raise ValueError(
            f"{translator.name} names no aligner; name a head, or measure them all with "
            "`python -m explorer survey --alignments FILE`."
        )
    return Aligner(tuple((layer, head) for layer, head in known["heads"]), known["rows"])


Floats = NDArray[np.float32]
ERRORS: dict[str, Rows] = {"aer": "predicted", "aer_read": "read"}
"""Maps each alignment error to the rows it uses: those that predict a word, or those that read
it."""


class CrossAlignments:
    """Word alignments by each head of cross-attention, each layer's mean, and that of all, by
    ``ERRORS``."""

    def __init__(self, config: ModelConfig) -> None:
        self._size = layers, heads = config.sizes.get("cross", (0, config.n_heads))
        every = tuple(np.ndindex(layers, heads))
        of_layers = [every[first : first + heads] for first in range(0, len(every), heads)]
        self._sources = tuple(dict.fromkeys([*((head,) for head in every), *of_layers, every]))
        self.counts: list[NDArray[np.int64]] = []  # of every pair, as `count` gives them

    def count(self, translator: Translator, gold: GoldPair) -> NDArray[np.int64]:
        """(aligners, 4) ``agreement`` on a gold pair, its target forced; the last aligner is the
        diagonal.

        DataError if a word draws nothing.
        """
        source = " ".join(gold.source)
        target = " ".join(gold.target)
        words = typed_words(translator, source, target, gold.place or source)
        trace = translator.force(source, target).trace
        layers = [trace.weights(AttentionKind.CROSS, layer) for layer in range(self._size[0])]
        maps = np.stack(
            [np.mean([layers[i][j] for i, j in heads], axis=0) for heads in self._sources]
        )
        by_rows = (link_words(word_weights(maps, *words, rows=rows)) for rows in ERRORS.values())
        return np.stack([agreement(links, gold) for links in (*chain(*by_rows), diagonal(gold))])

    def _of_heads(self, values: NDArray[np.int64], rows: Rows) -> NDArray[np.int64]:
        """(…, layers, heads, others) of values (…, aligners, others)."""
        first = [*ERRORS.values()].index(rows) * len(self._sources)
        layers, heads = self._size
        return values[..., first : first + layers * heads, :].reshape(
            *values.shape[:-2], layers, heads, -1
        )

    def scores(self, rows: Rows) -> list[list[AlignmentScore]]:
        """One score per layer and head, by rows that predict a word or that read it."""
        return [
            [*map(AlignmentScore.of, layer)]
            for layer in self._of_heads(np.sum(self.counts, axis=0), rows)
        ]

    def best(self) -> tuple[Aligner, float]:
        """The head or mean with the lowest error, and this error; of equal ones, the first."""
        errors = error_rate(np.sum(self.counts, axis=0))[:-1]
        rows, source = divmod(int(errors.argmin()), len(self._sources))
        return Aligner(self._sources[source], [*ERRORS.values()][rows]), float(errors.min())

    def errors(self) -> dict[str, Floats]:
        """`aer`, `aer_read` and the baseline `aer_diagonal`, over all pairs: each (layers,
        heads)."""
        counts = np.sum(self.counts, axis=0)
        errors = {name: error_rate(self._of_heads(counts, rows)) for name, rows in ERRORS.items()}
        errors["aer_diagonal"] = np.full_like(errors["aer"], error_rate(counts[-1]))
        return {name: error.astype(np.float32) for name, error in errors.items()}

    def pair_errors(self) -> Floats:
        """The error of each single pair (pairs, layers, heads), by the rows better over all
        pairs."""
        errors = self.errors()
        counts = np.stack(self.counts)
        predicted, read = (error_rate(self._of_heads(counts, rows)) for rows in ERRORS.values())
        return np.where(errors["aer_read"] < errors["aer"], read, predicted).astype(np.float32)


def align_gold(
    translator: Translator, gold: Sequence[GoldPair], workers: Workers = ALONE
) -> CrossAlignments:
    """The word alignments of all gold pairs, with their targets forced."""
    collected = CrossAlignments(translator.config)
    collected.counts += workers.shared_map(partial(collected.count, translator), gold)
    return collected
