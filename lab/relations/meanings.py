"""Heads that join words by meaning: the same word again, and antonyms.

Rows and rules are those of `relations`: in the row of one word, the largest weight among all words must be
on the other word, and a fixed offset is the rule to beat.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from lab.measurement import Json
from lab.relations.relations import Hits, Relation, arc_hits, encode, followed, word_maps
from lab.relations.treebanks import Tree, split_words
from transformer.model.sites import AttentionKind
from transformer.runs.translator import Translator
from transformer.runs.wording import InputError
from transformer.text.words import piece_words
from transformer.training.distributed import ALONE, Workers

AGAIN, OTHER_FORM, ANTONYM = "the same word again", "the same word in another form", "antonym"
DIRECTIONS = ("later to earlier", "earlier to later")
_PAIRS = """
alive dead, answer question, arrive leave, aunt uncle, autumn spring, bad good, beautiful ugly, begin
end, beginning end, best worst, better worse, big small, black white, boring interesting, borrow lend,
bottom top, boy girl, boys girls, brother sister, buy sell, cheap expensive, city country, clean dirty,
close open, cold hot, cold warm, cry laugh, dark light, daughter son, day night, dead living, death
life, die live, difficult easy, diligent lazy, dry wet, earlier later, early late, east west, easy hard,
empty full, enemies friends, enemy friend, evening morning, fail succeed, false true, far near, fast
slow, father mother, fathers mothers, finish start, first last, forget remember, future past, give take,
happy sad, hate love, healthy ill, healthy sick, heaven hell, high low, husband wife, inside outside,
king queen, large small, learn teach, long short, lose win, man woman, men women, narrow
wide, new old, north south, old young, older younger, open shut, peace war, poor rich, pull push,
quickly slowly, right wrong, short tall, smart stupid, start stop, strong weak, student teacher,
students teachers, summer winter, thick thin, today tomorrow, today yesterday, tomorrow yesterday
"""
ANTONYMS = frozenset(frozenset(pair.split()) for pair in _PAIRS.split(","))
"""Pairs of English words with opposite meanings, chosen for this project; function words are left out."""


@dataclass(frozen=True)
class Case:
    """A sentence with pairs of words that belong together."""

    group: str  # name of the group for `Hits`
    text: str  # the sentence
    words: Sequence[str]  # its words and punctuation marks
    pairs: dict[str, list[tuple[int, int]]]  # by relation, pairs of words (from 0), the earlier word first


def meanings(
    translator: Translator, trees: Sequence[Tree], texts: Iterable[str], workers: Workers = ALONE
) -> Json:
    """The best encoder head for each relation and direction, compared with the best fixed offset.

    Words that occur again are sought in sentences with lemmas, antonyms in plain texts.
    """

    def read(case: Case) -> dict[Relation, Hits] | None:
        try:
            pieces, trace = encode(translator, case.text)
        except InputError:
            return None
        table = piece_words(pieces, case.words)
        if table is None:
            return None
        arcs = [
            ((relation, direction), *pair)
            for relation, pairs in case.pairs.items()
            for early, late in pairs
            for direction, pair in zip(DIRECTIONS, ((late, early), (early, late)), strict=True)
        ]
        return arc_hits(case.group, word_maps(trace, AttentionKind.ENCODER, table), arcs)

    return followed(workers.each(read, (*_again(trees), *_opposite(texts))), translator.config.n_heads)


def _again(trees: Sequence[Tree]) -> Iterator[Case]:
    """Sentences in which a content word occurs again, in the same form or in another."""
    for number, tree in enumerate(trees):
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for i, j in combinations(range(len(tree.lemmas)), 2):
            if tree.lemmas[i] is not None and tree.lemmas[i] == tree.lemmas[j]:
                alike = tree.words[i].lower() == tree.words[j].lower()
                found[AGAIN if alike else OTHER_FORM].append((i, j))
        if found:
            yield Case(str(number), tree.text, tree.words, found)


def _opposite(texts: Iterable[str]) -> Iterator[Case]:
    """Sentences that hold both words of a pair of `ANTONYMS`; one pair of words is one group."""
    for text in texts:
        words = split_words(text)
        lower = [word.lower() for word in words]
        known = [(i, j) for i, j in combinations(range(len(words)), 2) if {lower[i], lower[j]} in ANTONYMS]
        if known:
            group = " ".join(sorted({lower[i] for i in known[0]}))
            yield Case(group, text, words, {ANTONYM: known})
