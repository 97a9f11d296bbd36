"""Words of a language model: which ones are looked at, and their neighbours.

The lists of everyday words were written before any neighbours were looked at. Of each group the most frequent
words are taken that the vocabulary has as one piece, so nobody chooses which words look good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lab.language.cooccurrence import SMOOTHING, WINDOW, cooccurrence
from lab.language.embeddings import Ints, Snapshots, neighbours_in_training
from lab.measurement import Json
from transformer.text.vocabulary import Vocabulary
from transformer.text.words import SPACE

NEIGHBOURS = 8
PER_GROUP = 10
LEAST = 100
"""Occurrences in the text that a word needs."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


GROUPS = {
    "days and times": _words(
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday morning afternoon evening night today "
        "tomorrow yesterday week month year hour minute day"
    ),
    "numbers": _words(
        "one two three four five six seven eight nine ten eleven twelve twenty thirty hundred thousand"
    ),
    "colours": _words("red green blue yellow black white brown grey gray pink purple orange"),
    "animals": _words("dog cat horse bird fish cow pig sheep mouse lion bear rabbit chicken snake monkey"),
    "family": _words(
        "mother father sister brother son daughter wife husband parents child children uncle aunt friend"
    ),
    "food": _words(
        "bread water milk tea coffee wine beer meat apple rice soup cake sugar salt cheese food egg fruit"
    ),
    "countries": _words(
        "Germany France England America Japan China Italy Spain Russia Canada Australia Europe India Poland"
    ),
    "languages": _words(
        "English French German Japanese Spanish Chinese Italian Russian Latin Greek Dutch Portuguese"
    ),
    "names": _words("Tom Mary John Jim Bill Mike Ken Jack Nancy Bob Jane Peter Alice Anna"),
    "places": _words(
        "house school room station hospital office park church hotel library kitchen street garden city"
    ),
    "computer": _words(
        "file folder window button menu page text image document field cell table server layer color key"
    ),
    "past verbs": _words(
        "went came saw took gave made said told bought found left ate wrote knew thought got lost met"
    ),
    "plain verbs": _words(
        "go come see take give make say tell buy find leave eat write know think get lose meet"
    ),
    "pronouns": _words("I you he she it we they me him her us them"),
}
"""Words by group; no word is in two."""


def grouped_words(
    tokenizer: Vocabulary, counts: Ints, per_group: int = PER_GROUP, least: int = LEAST
) -> dict[str, list[int]]:
    """The ids of the words of each group that are one piece, most frequent first; no empty groups."""
    single = one_piece(tokenizer)
    found = {}
    for name, words in GROUPS.items():
        ids = [id_ for id_ in map(single, words) if id_ is not None and counts[id_] >= least]
        found[name] = sorted(ids, key=lambda id_: (-counts[id_], id_))[:per_group]
    return {name: ids for name, ids in found.items() if ids}


def one_piece(tokenizer: Vocabulary) -> Callable[[str], int | None]:
    """A function that gives the id of a word that is one piece of the vocabulary, else None."""
    places = {piece: id_ for id_, piece in enumerate(tokenizer.pieces(range(tokenizer.vocab_size)))}
    return lambda word: places.get(f"{SPACE}{word}")


def whole_words(tokenizer: Vocabulary, counts: Ints, least: int = LEAST) -> list[int]:
    """The ids of all pieces that begin a word, consist of letters and occur ``least`` times.

    Such a piece is not always a whole word: "work" also begins "working", if that has no piece of its own.
    """
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    return [
        id_
        for id_, piece in enumerate(pieces)
        if piece.startswith(SPACE) and piece[1:].isalpha() and counts[id_] >= least
    ]


def measure_words(
    tokenizer: Vocabulary, snapshots: Snapshots, sentences: Sequence[Sequence[int]], least: int = LEAST
) -> Json:
    """Neighbours of chosen words at each snapshot, and by co-occurrence in sentences.

    ``candidates`` is the number of pieces that may be neighbours.
    """
    counted = cooccurrence(sentences, tokenizer.vocab_size)
    groups = grouped_words(tokenizer, counted.counts, least=least)
    candidates = whole_words(tokenizer, counted.counts, least)
    chosen = [id_ for ids in groups.values() for id_ in ids]
    company = counted.neighbours(chosen, candidates, NEIGHBOURS)
    pieces = [piece.removeprefix(SPACE) for piece in tokenizer.pieces(range(tokenizer.vocab_size))]
    return {
        **neighbours_in_training(snapshots, chosen, candidates, pieces, NEIGHBOURS, company),
        "groups": [name for name, ids in groups.items() for _ in ids],
        "candidates": len(candidates),
        "least": least,
        "window": WINDOW,
        "smoothing": SMOOTHING,
    }
