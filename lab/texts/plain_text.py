"""Plain text for a language model, one sentence a line: distinct, shuffled, with parts held out.

Everything is drawn by hash (BLAKE2b), so that the parts depend on the sentences alone and on no random
generator. Each held-out part has a share of every source by its number of distinct sentences.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lab.texts.near_duplicates import NearDuplicates

Sources = Mapping[str, Sequence[str]]
"""Sentences by the name of the file that they stand in."""


@dataclass(frozen=True)
class Parts:
    """The sentences of each part, shuffled."""

    train: tuple[str, ...]  # sentences to train on; none is a near duplicate of one held out
    valid: tuple[str, ...]  # held out, to watch a training
    heldout: tuple[str, ...]  # held out, to quote
    # how many sentences were left out of ``train`` because they are near one held out, by source
    near: dict[str, int]


def distinct(sources: Sources) -> dict[str, list[str]]:
    """The sentences that have a letter, each once: the first of those that differ in case and spaces only."""
    seen: set[str] = set()
    return {name: [text for text in texts if _is_new(text, seen)] for name, texts in sources.items()}


def _is_new(text: str, seen: set[str]) -> bool:
    key = "".join(text.lower().split())
    new = key not in seen and any(char.isalpha() for char in key)
    seen.add(key)
    return new


def parts(
    sources: Sources,  # distinct sentences by source
    held: int,  # sentences of each held-out part
    tests: Iterable[str] = (),  # further sentences that are held out, which stand in no source
) -> Parts:
    """Draws the held-out parts from distinct sentences and leaves near duplicates of them out of the rest."""
    total = sum(map(len, sources.values()))
    if not 0 < 2 * held < total:
        raise ValueError(f"There are {total:,} distinct sentences; two parts of {held:,} cannot be held out.")
    shares = dict(zip(sources, _shares([len(texts) for texts in sources.values()], held), strict=True))
    drawn = {name: shuffled(texts, "draw") for name, texts in sources.items()}
    heldout = [text for name, n in shares.items() for text in drawn[name][:n]]
    valid = [text for name, n in shares.items() for text in drawn[name][n : 2 * n]]
    near = NearDuplicates([*heldout, *valid, *tests])
    rest = {name: drawn[name][2 * n :] for name, n in shares.items()}
    kept = {name: [text for text in texts if text not in near] for name, texts in rest.items()}
    return Parts(
        tuple(shuffled([text for texts in kept.values() for text in texts])),
        tuple(shuffled(valid)),
        tuple(shuffled(heldout)),
        {name: len(rest[name]) - len(texts) for name, texts in kept.items()},
    )


def _shares(sizes: Sequence[int], held: int) -> list[int]:
    """Whole numbers in proportion to the sizes that add up to ``held``."""
    total = sum(sizes)
    ends = [round(held * sum(sizes[: place + 1]) / total) for place in range(len(sizes))]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def shuffled(texts: Iterable[str], purpose: str = "order") -> list[str]:
    """The sentences in the order of their hashes; each purpose has an order of its own."""
    return sorted(texts, key=lambda text: _hash(text, purpose))


def _hash(text: str, purpose: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16, person=purpose.encode()).digest()
