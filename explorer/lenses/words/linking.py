"""Links read from cross-attention: of the words of any pair by one aligner, of gold pairs by every head."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from explorer.lenses.words.alignment import (
    Aligner,
    AlignmentScore,
    attention_links,
    diagonal,
    link_words,
    merge_words,
    score,
)
from explorer.lenses.words.links import GoldPair, Links
from explorer.lenses.words.reading import Rows
from transformer.config import AttentionKind, ModelConfig
from transformer.text.pairs import DataError
from transformer.text.words import Group
from transformer.training.distributed import ALONE, Workers
from transformer.translator import Translator


@dataclass(frozen=True)
class Linker:
    """A model and the aligner that reads its cross-attention."""

    translator: Translator  # the model
    aligner: Aligner  # its head, or the mean of several

    def links(self, source: str, target: str) -> Links:
        """Each target word's link to its strongest source word, the target forced; as ``typed_words``."""
        words, wanted = typed_words(self.translator, source, target)
        weights = self.aligner.weights(self.translator.force(_spaced(source), _spaced(target)))
        return link_words(merge_words(weights, wanted, words)[None])[0]


def typed_words(
    translator: Translator, source: str, target: str, place: str = ""
) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
    """The pieces of each typed word of a pair; InputError for its length, DataError if one draws nothing."""
    words = translator.cut(_spaced(source)).groups(), translator.cut(_spaced(target), "target").groups()
    if tuple(map(len, words)) != (len(source.split()), len(target.split())):
        said = f"{place}: a" if place else "A"
        raise DataError(f"{said} word of this pair has no visible character; its links count it.")
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
"""Maps each alignment error to the rows it uses: those that predict a word, or those that read it."""


class CrossAlignments:
    """Word alignments by each head of cross-attention, each layer's mean, and that of all, by ``ERRORS``."""

    def __init__(self, config: ModelConfig) -> None:
        layers = range(config.sites[AttentionKind.CROSS].n_layers)
        self._shape = len(layers), config.n_heads
        heads = [[(layer, head) for head in range(config.n_heads)] for layer in layers]
        every = [each for layer in heads for each in layer]
        self._sources = tuple(dict.fromkeys([*((each,) for each in every), *map(tuple, heads), tuple(every)]))
        self._found: dict[Aligner, list[Links]] = {
            Aligner(source, rows): [] for rows in ERRORS.values() for source in self._sources
        }
        self._gold: list[GoldPair] = []

    def add(self, translator: Translator, gold: GoldPair) -> None:
        """Adds one gold pair, with its target forced; raises as ``links``."""
        self.take(self.links(translator, gold), gold)

    def links(self, translator: Translator, gold: GoldPair) -> list[Links]:
        """The links of one gold pair, its target forced, by aligner; DataError if a word draws nothing."""
        source, target = " ".join(gold.source), " ".join(gold.target)
        words = typed_words(translator, source, target, gold.place or source)
        trace = translator.force(source, target).trace
        layers = [trace.weights(AttentionKind.CROSS, layer) for layer in range(self._shape[0])]
        picked = ([layers[layer][head] for layer, head in source] for source in self._sources)
        maps = np.stack([np.mean(each, axis=0) for each in picked])
        return [each for rows in ERRORS.values() for each in attention_links(maps, *words, rows=rows)]

    def take(self, links: Sequence[Links], gold: GoldPair) -> None:
        """Adds the links of one forced gold target, as `links` gives them."""
        for found, each in zip(self._found.values(), links, strict=True):
            found.append(each)
        self._gold.append(gold)

    @property
    def pairs(self) -> int:
        """Number of gold pairs added."""
        return len(self._gold)

    def _heads(self, rows: Rows) -> list[list[list[Links]]]:
        """The links of each layer and head."""
        layers, heads = self._shape
        return [[self._found[Aligner(((i, j),), rows)] for j in range(heads)] for i in range(layers)]

    def scores(self, rows: Rows) -> list[list[AlignmentScore]]:
        """One score per layer and head; `rows` as in `attention_links`."""
        return [[score(found, self._gold) for found in heads] for heads in self._heads(rows)]

    @property
    def alignments(self) -> Mapping[Aligner, Sequence[Links]]:
        """The links of every pair, by aligner."""
        return self._found

    def best(self) -> tuple[Aligner, float]:
        """The head or mean with the lowest error, and this error; of equal ones, the first."""
        errors = {aligner: score(links, self._gold).aer for aligner, links in self._found.items()}
        best = min(errors, key=errors.__getitem__)
        return best, errors[best]

    def errors(self) -> dict[str, Floats]:
        """`aer`, `aer_read` and the baseline `aer_diagonal`, over all pairs: each (layers, heads)."""
        found = {
            name: np.array([[each.aer for each in heads] for heads in self.scores(rows)], np.float32)
            for name, rows in ERRORS.items()
        }
        baseline = score(map(diagonal, self._gold), self._gold).aer
        return found | {"aer_diagonal": np.full_like(found["aer"], baseline)}

    def pair_errors(self) -> Floats:
        """The error of each single pair (pairs, layers, heads), by the rows better over all pairs."""
        errors = self.errors()
        one, other = (
            np.array(
                [
                    [[score([head[i]], [pair]).aer for head in heads] for heads in self._heads(rows)]
                    for i, pair in enumerate(self._gold)
                ],
                np.float32,
            )
            for rows in ERRORS.values()
        )
        return np.where(errors["aer_read"] < errors["aer"], other, one)


def align_gold(translator: Translator, gold: Sequence[GoldPair], workers: Workers = ALONE) -> CrossAlignments:
    """The word alignments of all gold pairs, with their targets forced."""
    collected = CrossAlignments(translator.config)

    found_links = workers.shared_map(partial(collected.links, translator), gold)
    for found, pair in zip(found_links, gold, strict=True):
        collected.take(found, pair)
    return collected
