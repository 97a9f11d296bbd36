"""`python -m lab links`: links the words of sentence pairs by a statistical aligner, for `train`."""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from lab.measurement import File, Pairs, command
from transformer.text.pairs import SentencePair, read_pairs

_WORD = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")
"""A word or a punctuation mark; inner hyphens and apostrophes stay in the word."""
Words = tuple[tuple[str, ...], tuple[str, ...]]


@command()
def links(
    data: Annotated[tuple[Pairs, ...], "source<TAB>target lines (.gz too)"],
    output: Annotated[File, "file to write (.gz is packed)"],
) -> None:
    """Links the words of sentence pairs by the statistical aligner eflomal (pip install eflomal).

    Writes `source<TAB>target<TAB>links` lines, with spaces between words. The links are those that the
    aligner finds from both sides (Östling and Tiedemann 2016, model 3).
    """
    pairs = [pair for path in data for pair in read_pairs(path)]
    words = [_words(pair) for pair in pairs]
    opened = gzip.open if output.suffix == ".gz" else open
    with opened(output, "wt", encoding="utf-8") as file:
        for (source, target), found in zip(words, _linked(words), strict=True):
            shown = " ".join(f"{i}-{j}" for i, j in sorted(found))
            file.write(f"{' '.join(source)}\t{' '.join(target)}\t{shown}\n")
    print(f"Wrote {len(words):,} pairs to {output}.")


def _words(pair: SentencePair) -> Words:
    return tuple(_WORD.findall(pair.source)), tuple(_WORD.findall(pair.target))


def _linked(words: Sequence[Words]) -> Iterator[set[tuple[int, int]]]:
    """The links of every pair that are found in both directions."""
    try:
        from eflomal import Aligner
    except ImportError as error:
        raise ValueError("The aligner eflomal is not installed; `pip install eflomal` builds it.") from error
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("forward", "reverse")]
        sides = ([" ".join(side).lower() for side in column] for column in zip(*words, strict=True))
        Aligner().align(*sides, links_filename_fwd=files[0], links_filename_rev=files[1])
        forward, reverse = (Path(file).read_text(encoding="utf-8").splitlines() for file in files)
    for ours, theirs in zip(forward, reverse, strict=True):
        yield _read(ours) & _read(theirs)


def _read(line: str) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, _, j in (link.partition("-") for link in line.split())}
