"""Linguistic relations that attention heads follow, compared with a fixed rule.

A head *follows* an arc if, in the row of one word, the largest weight among all words is on the other word.
Weights of pieces are summed over the pieces of a key word and averaged over those of a query word. `</s>` and
`<s>` are not words; the query word itself counts among the keys. Head and rule are chosen on one half of the
sentences and measured on the other, so that the best of many heads does not win by luck.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from lab.heads.statistics import Floats
from lab.measurement import Json
from lab.relations.treebanks import PronounCase, Tree
from transformer.decode.request import TranslationRequest
from transformer.lenses.scores.bootstrap import interval, resamples
from transformer.lenses.scores.gold_links import trace_of
from transformer.model.sites import AttentionKind
from transformer.runs.translator import Translator
from transformer.text.words import piece_words
from transformer.trace.recorder import Capture, Recorder
from transformer.trace.records import AttentionTrace
from transformer.trace.report import AuditReport
from transformer.training.distributed import ALONE, Workers

OFFSETS = tuple(offset for offset in range(-8, 9) if offset)
LEAST_ARCS = 100
RESAMPLES = 2_000
DIRECTIONS = ("dependent to head", "head to dependent")
Relation = tuple[str, str]
"""Its name and direction."""


@dataclass(frozen=True)
class Finding:
    """Success of the best head and of the best rule, as shares of `count`."""

    layer: int  # layer of the head, from 0
    head: int  # the head, from 0
    share: float  # the head's share
    rule: str  # the rule: an offset in words, or the name of a rule
    baseline: float  # the rule's share
    low: float  # lower end of the 95 % interval of share − baseline, from resampled groups of sentences
    high: float  # upper end of that interval
    count: int  # number of cases measured


@dataclass(frozen=True)
class Hits:
    """Counts of correct cases in one group of related sentences."""

    group: str  # name of the group; a group is never split between halves or in resampling
    count: int  # number of cases
    heads: NDArray[np.int64]  # (layers × heads) number of cases that each head gets right
    rules: NDArray[np.int64]  # (rules) number of cases that each rule gets right


def compare(hits: Sequence[Hits], n_heads: int, rules: Sequence[str]) -> Finding | None:
    """Chooses head and rule on one half of the groups, and measures them on the other.

    None if a half has fewer than `LEAST_ARCS` / 2 cases.
    """
    halves: tuple[list[Hits], list[Hits]] = ([], [])
    for each in hits:
        halves[zlib.crc32(each.group.encode()) & 1].append(each)
    if min(sum(each.count for each in half) for half in halves) < LEAST_ARCS / 2:
        return None
    best = int(np.argmax(sum(each.heads for each in halves[0])))
    rule = int(np.argmax(sum(each.rules for each in halves[0])))
    groups: dict[str, NDArray[np.float64]] = defaultdict(lambda: np.zeros(3))
    for each in halves[1]:
        groups[each.group] += (each.count, each.heads[best], each.rules[rule])
    table = np.array(list(groups.values()))
    count, right, ruled = table.sum(0)
    counts, rights, ruleds = (resamples(len(table), RESAMPLES) @ table).T
    low, high = interval((rights - ruleds) / np.maximum(1, counts))
    layer, head = divmod(best, n_heads)
    return Finding(layer, head, right / count, rules[rule], ruled / count, low, high, int(count))


def merge(weights: Floats, table: Floats) -> Floats:
    """Attention between words (heads, words, words) from that between pieces (see `piece_words`)."""
    found: Floats = (table / table.sum(1, keepdims=True)) @ weights @ table.T
    return found


def word_maps(trace: AttentionTrace, kind: AttentionKind, table: Floats) -> Floats:
    """Attention maps between words (layers × heads, words, words) of one kind."""
    return np.concatenate(
        [merge(trace.weights(kind, layer), table) for layer in range(len(trace.layers[kind]))]
    )


def encode(translator: Translator, text: str) -> tuple[tuple[str, ...], AttentionTrace]:
    """Runs only the encoder on a text; returns the pieces and encoder self-attention."""
    ids = (*translator.ids(text), translator.config.eos_id)
    recorder = Recorder(Capture())
    TranslationRequest(translator.model, torch.tensor([ids], device=translator.device), recorder)
    trace = recorder.trace(lambda *_: AuditReport(()))
    assert trace is not None
    return translator.source_pieces(ids), trace


def arc_hits(group: str, maps: Floats, arcs: Iterable[tuple[Relation, int, int]]) -> dict[Relation, Hits]:
    """Hits of every head and every offset of `OFFSETS` among arcs from a row to a key of some maps."""
    best, offsets = maps.argmax(-1), np.array(OFFSETS)
    cells: dict[Relation, list[tuple[int, int]]] = defaultdict(list)
    for relation, row, key in arcs:
        cells[relation].append((row, key))
    found = {}
    for relation, places in cells.items():
        rows, keys = np.array(places).T
        ruled = (offsets[:, None] == keys - rows).sum(1)
        found[relation] = Hits(group, len(places), (best[:, rows] == keys).sum(1), ruled)
    return found


def followed(sentences: Iterable[dict[Relation, Hits] | None], n_heads: int) -> Json:
    """The best head for each relation, compared with the best offset; a sentence without maps is None."""
    hits: dict[Relation, list[Hits]] = defaultdict(list)
    counts = {"sentences": 0, "skipped": 0}
    for sentence in sentences:
        counts["skipped" if sentence is None else "sentences"] += 1
        for relation, found in (sentence or {}).items():
            hits[relation].append(found)
    rules = [f"{offset:+d}" for offset in OFFSETS]
    findings = {relation: compare(hits[relation], n_heads, rules) for relation in sorted(hits)}
    relations = [
        {"relation": name, "direction": direction} | rounded(finding)
        for (name, direction), finding in findings.items()
        if finding is not None
    ]
    return counts | {"relations": relations}


def dependencies(
    translator: Translator, trees: Sequence[Tree], kind: AttentionKind, workers: Workers = ALONE
) -> Json:
    """The best head for each dependency and direction, compared with the best fixed offset.

    Maps are those of the encoder that reads a tree, or of the decoder forced to write it. Under a causal
    mask, only arcs to an earlier word count, because later words are masked.
    """
    site = translator.config.sites[kind]

    def read(numbered: tuple[int, Tree]) -> dict[Relation, Hits] | None:
        number, tree = numbered
        if site.query_side == "encoder":
            pieces, trace = encode(translator, tree.text)
        elif tree.translation_of:
            run = translator.force(tree.translation_of, tree.text)
            pieces, trace = run.labels(kind).queries, trace_of(run)
        else:
            return None
        table = piece_words(pieces, tree.words)
        if table is None:
            return None
        arcs = [
            ((arc.relation, direction), row, key)
            for arc in tree.arcs
            for direction, row, key in zip(
                DIRECTIONS, (arc.dependent, arc.head), (arc.head, arc.dependent), strict=True
            )
            if key < row or not site.causal
        ]
        return arc_hits(str(number), word_maps(trace, kind, table), arcs)

    return followed(workers.each(read, enumerate(trees)), translator.config.n_heads)


def pronouns(
    translator: Translator, cases: Sequence[PronounCase], left_out: int, workers: Workers = ALONE
) -> Json:
    """Success of the row of a pronoun in finding its antecedent, compared with the rule "nearest person".

    `of two`: the antecedent has a larger weight than the other person. `of all words`: the antecedent has the
    largest weight of all words.
    """
    hits: dict[str, list[Hits]] = {"of two": [], "of all words": []}
    for each in workers.each(partial(_case_hits, translator), cases):
        left_out += each is None
        for name, found in (each or {}).items():
            hits[name].append(found)
    findings = {
        name: compare(found, translator.config.n_heads, ["nearest person"]) for name, found in hits.items()
    }
    return {
        "sentences": len(hits["of two"]),
        "skipped": left_out,
        "findings": {name: rounded(found) for name, found in findings.items() if found is not None},
    }


def _case_hits(translator: Translator, case: PronounCase) -> dict[str, Hits] | None:
    """Hits of every head in one sentence; None if its pieces do not fit the words."""
    pieces, trace = encode(translator, case.text)
    table = piece_words(pieces, case.words)
    if table is None:
        return None
    rows = word_maps(trace, AttentionKind.ENCODER, table)[:, case.pronoun]
    nearest = abs(case.antecedent - case.pronoun) < abs(case.other - case.pronoun)
    group, rule = " and ".join(case.people), np.array([int(nearest)])
    right = {
        "of two": rows[:, case.antecedent] > rows[:, case.other],
        "of all words": rows.argmax(-1) == case.antecedent,
    }
    return {name: Hits(group, 1, values.astype(np.int64), rule) for name, values in right.items()}


def rounded(finding: Finding) -> Json:
    """A finding as JSON values, rounded to four decimals."""
    values = asdict(finding)
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}
