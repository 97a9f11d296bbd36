"""Subject–verb agreement of a language model on minimal pairs: is the right sentence the more probable one?

The pairs are those of CLAMS: Mueller, Nicolai, Petrou-Zeniou, Talmina and Linzen, "Cross-linguistic syntactic
evaluation of word prediction models", ACL 2020. They stand in lower case without a full stop, one word apart.
A model that has read written sentences would be judged on how it reads such lines rather than on grammar, so
each sentence gets a capital and a full stop first.

The pairs are made from templates: those with one subject differ in little else, and are no independent draws.
Intervals therefore resample subjects, not pairs. Chance is one half.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab.measurement import Json
from transformer.lenses.scores.bootstrap import Floats, cell, ratio, resamples
from transformer.text.pairs import DataError, read_lines

LogProbs = Callable[[Sequence[str]], Floats]
"""Natural logs of the probabilities of sentences, ends included: n sentences → (n,)."""
_Row = tuple[int, str, str, str]
"""Number of a line, and its columns."""
INSIDE = "obj_rel_within_anim"
"""The case in which the verb of a relative clause agrees with the subject of that clause."""
CASES = {
    "simple_agrmt": "the verb follows its subject",
    "simple_reflexives": "a reflexive pronoun",
    "vp_coord": "the second of two verbs",
    "long_vp_coord": "the second of two long verb phrases",
    "prep_anim": "across a prepositional phrase",
    "subj_rel": "across a subject relative clause",
    "obj_rel_across_anim": "across an object relative clause",
    INSIDE: "inside an object relative clause",
}
"""The cases of the English pairs, simple ones first, and where each has its verb or pronoun."""


@dataclass(frozen=True)
class AgreementPair:
    """Two sentences that differ in agreement alone."""

    case: str  # name of the construction
    right: str  # the sentence in which subject and verb agree, as in the file
    wrong: str  # the other one

    @property
    def subject(self) -> str:
        """The noun with which the differing word agrees: after the first article, or inside a relative clause
        right before that word.
        """
        words = self.right.split()
        differ = [one != other for one, other in zip(words, self.wrong.split(), strict=False)]
        return words[differ.index(True) - 1 if self.case == INSIDE else 1]


def read_agreement(path: str | Path) -> list[AgreementPair]:
    """Reads `case<TAB>True|False<TAB>sentence` lines, each True line before its False one."""
    rows = [(number, *_columns(path, number, line)) for number, line in read_lines(path)]
    if not rows or len(rows) % 2:
        raise DataError(f"{path}: the file has {len(rows):,} lines; it needs pairs of lines.")
    return [_pair(path, *two) for two in zip(rows[::2], rows[1::2], strict=True)]


def _columns(path: str | Path, number: int, line: str) -> tuple[str, str, str]:
    columns = line.split("\t")
    if len(columns) != 3 or len(columns[2].split()) < 2:
        raise DataError(f"{path}:{number}: expected a case, tab, True or False, tab, and a sentence.")
    return columns[0], columns[1], columns[2]


def _pair(path: str | Path, first: _Row, second: _Row) -> AgreementPair:
    if first[1] != second[1] or (first[2], second[2]) != ("True", "False"):
        raise DataError(f"{path}:{first[0]}: expected a True line and then a False line of the same case.")
    if len(first[3].split()) != len(second[3].split()) or first[3].split() == second[3].split():
        raise DataError(f"{path}:{first[0]}: expected two sentences that differ in a word.")
    return AgreementPair(first[1], first[3], second[3])


def as_written(sentence: str) -> str:
    """The sentence with a capital at its start and a full stop."""
    return f"{sentence[:1].upper()}{sentence[1:]}."


def drawn(pairs: Iterable[AgreementPair], per_case: int) -> list[AgreementPair]:
    """At most so many pairs of each case, drawn by hash."""
    by_case: dict[str, list[AgreementPair]] = defaultdict(list)
    for pair in pairs:
        by_case[pair.case].append(pair)
    return [pair for known in by_case.values() for pair in sorted(known, key=_hash)[:per_case]]


def _hash(pair: AgreementPair) -> bytes:
    return hashlib.blake2b(pair.right.encode(), digest_size=16).digest()


def agreement(pairs: Sequence[AgreementPair], log_probs: LogProbs) -> dict[str, Json]:
    """Share of pairs whose right sentence is the more probable one, by case, with intervals over subjects.

    It reads each sentence with a capital and a full stop.
    """
    right = log_probs([as_written(pair.right) for pair in pairs])
    wins = np.asarray(right) > np.asarray(log_probs([as_written(pair.wrong) for pair in pairs]))
    by_case: dict[str, dict[str, Floats]] = defaultdict(lambda: defaultdict(lambda: np.zeros(2)))
    for pair, win in zip(pairs, wins, strict=True):
        by_case[pair.case][pair.subject] += (float(win), 1.0)
    found = {}
    for case, sums in by_case.items():
        table = np.stack(list(sums.values()))
        won, count = table.sum(0)
        accuracy = cell(won / count, ratio(resamples(len(table)) @ table))
        found[case] = {"pairs": int(count), "subjects": len(table), "accuracy": accuracy}
    return found
