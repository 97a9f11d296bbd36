"""Which linguistic relations attention heads follow, held against what a fixed rule gets right.

A head *follows* an arc if, in the row of one word, the largest weight among all words is on the other one.
Weights of pieces are summed over a key word's pieces and averaged over a query word's; `</s>` and `<s>` are
no words; a word itself counts as one. Head and rule are chosen on one half of the sentences and measured on
the other, so that the best of many heads does not win by luck.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.decode.request import Request
from transformer.model.sites import AttentionKind
from transformer.study.bootstrap import interval, resamples
from transformer.study.statistics import Floats, trace_of
from transformer.study.treebanks import PronounCase, Tree, piece_words
from transformer.trace.recorder import Capture, Recorder
from transformer.trace.records import AttentionTrace
from transformer.trace.report import AuditReport
from transformer.translate.translator import Translator

OFFSETS = tuple(offset for offset in range(-8, 9) if offset)
LEAST_ARCS = 100
RESAMPLES = 2_000
DIRECTIONS = ("dependent to head", "head to dependent")


@dataclass(frozen=True)
class Finding:
    """How often the best head is right, and how often the rule beside it is; shares of `count`.

    Attributes:
        layer: Layer of the head, from 0.
        head: The head, from 0.
        share: The head's share.
        rule: The rule: an offset in words, or a name.
        baseline: The rule's share.
        low: Lower end of the 95 % interval of share − baseline, from sentences drawn anew.
        high: Upper end.
        count: Number of cases measured.
    """

    layer: int
    head: int
    share: float
    rule: str
    baseline: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Hits:
    """What was right in one group of sentences that belong together.

    Attributes:
        group: Name of the group: half and resampling go by it.
        count: Number of cases.
        heads: (layers × heads) how many of them each head gets right.
        rules: (rules) how many each rule gets right.
    """

    group: str
    count: int
    heads: NDArray[np.int64]
    rules: NDArray[np.int64]


def compare(hits: Sequence[Hits], n_heads: int, rules: Sequence[str]) -> Finding | None:
    """Chooses head and rule on one half of the groups, measures them on the other.

    Returns:
        None where a half has fewer than `LEAST_ARCS` / 2 cases.
    """
    halves: tuple[list[Hits], list[Hits]] = ([], [])
    for each in hits:
        halves[zlib.crc32(each.group.encode()) & 1].append(each)
    if min(sum(each.count for each in half) for half in halves) < LEAST_ARCS / 2:
        return None
    best = int(np.argmax(sum(each.heads for each in halves[0])))
    rule = int(np.argmax(sum(each.rules for each in halves[0])))
    table = _by_group(halves[1], best, rule)
    count, right, ruled = table.sum(0)
    low, high = interval(_gain(resamples(len(table), RESAMPLES) @ table))
    layer, head = divmod(best, n_heads)
    return Finding(layer, head, right / count, rules[rule], ruled / count, low, high, int(count))


def _by_group(hits: Iterable[Hits], best: int, rule: int) -> NDArray[np.float64]:
    """(groups, 3) cases, the head's and the rule's right ones."""
    groups: dict[str, NDArray[np.float64]] = defaultdict(lambda: np.zeros(3))
    for each in hits:
        groups[each.group] += (each.count, each.heads[best], each.rules[rule])
    return np.array(list(groups.values()))


def _gain(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share − baseline of summed tables (…, 3) → (…)."""
    count, right, ruled = np.moveaxis(sums, -1, 0)
    gain: NDArray[np.float64] = (right - ruled) / np.maximum(1, count)
    return gain


def merge(weights: Floats, table: Floats) -> Floats:
    """Attention between words, (heads, words, words), of pieces that `piece_words` gives to words."""
    found: Floats = (table / table.sum(1, keepdims=True)) @ weights @ table.T
    return found


def word_maps(trace: AttentionTrace, kind: AttentionKind, table: Floats) -> Floats:
    """(layers × heads, words, words) of one kind."""
    return np.concatenate(
        [merge(trace.weights(kind, layer), table) for layer in range(len(trace.layers[kind]))]
    )


def encode(translator: Translator, text: str) -> tuple[tuple[str, ...], AttentionTrace]:
    """Runs the encoder alone over a text: its pieces, and encoder self-attention."""
    ids = (*translator.ids(text), translator.config.eos_id)
    recorder = Recorder(Capture())
    Request(translator.model, torch.tensor([ids], device=translator.device), recorder)
    trace = recorder.trace(lambda *_: AuditReport(()))
    assert trace is not None
    return translator.source_pieces(ids), trace


def follow_trees(
    translator: Translator, trees: Sequence[Tree], kind: AttentionKind
) -> Iterator[tuple[Tree, Floats | None]]:
    """Word maps of every tree: of the encoder reading it, or of the decoder forced to write it.

    Yields:
        The tree, and its maps (layers × heads, words, words); None where pieces and words do not fit, or the
        file does not say what was translated.
    """
    for tree in trees:
        if translator.config.sites[kind].query_side == "encoder":
            pieces, trace = encode(translator, tree.text)
        elif tree.translation_of:
            run = translator.force(tree.translation_of, tree.text)
            pieces, trace = run.labels(kind).queries, trace_of(run)
        else:
            yield tree, None
            continue
        table = piece_words(pieces, tree.words)
        yield tree, None if table is None else word_maps(trace, kind, table)


def dependencies(translator: Translator, trees: Sequence[Tree], kind: AttentionKind) -> dict[str, Any]:
    """The best head of each relation and direction, beside the best fixed offset.

    Under a causal mask only arcs that lead to an earlier word count: later ones are masked.
    """
    hits: dict[tuple[str, str], list[Hits]] = defaultdict(list)
    skipped, causal = 0, translator.config.sites[kind].causal
    for number, (tree, maps) in enumerate(follow_trees(translator, trees, kind)):
        if maps is None:
            skipped += 1
            continue
        for key, found in _tree_hits(str(number), tree, maps, causal=causal).items():
            hits[key].append(found)
    rules = [f"{offset:+d}" for offset in OFFSETS]
    relations = []
    for (relation, direction), collected in sorted(hits.items()):
        finding = compare(collected, translator.config.n_heads, rules)
        if finding is not None:
            relations.append({"relation": relation, "direction": direction} | _rounded(finding))
    return {"sentences": len(trees) - skipped, "skipped": skipped, "relations": relations}


def _tree_hits(group: str, tree: Tree, maps: Floats, *, causal: bool) -> dict[tuple[str, str], Hits]:
    best = maps.argmax(-1)
    pairs: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for arc in tree.arcs:
        ends = (arc.dependent, arc.head), (arc.head, arc.dependent)
        for direction, (row, key) in zip(DIRECTIONS, ends, strict=True):
            if key < row or not causal:
                pairs[arc.relation, direction].append((row, key))
    offsets = np.array(OFFSETS)
    found = {}
    for name, cells in pairs.items():
        rows, keys = np.array(cells).T
        heads = (best[:, rows] == keys).sum(1)
        found[name] = Hits(group, len(cells), heads, (offsets[:, None] == keys - rows).sum(1))
    return found


def pronouns(translator: Translator, cases: Sequence[PronounCase], left_out: int) -> dict[str, Any]:
    """Whether a pronoun's row finds its antecedent, beside the rule that takes the nearest person.

    `of two`: of the two people's words, the antecedent has the larger weight. `of all words`: it has the
    largest weight of all words.
    """
    hits: dict[str, list[Hits]] = {"of two": [], "of all words": []}
    for case in cases:
        pieces, trace = encode(translator, case.text)
        table = piece_words(pieces, case.words)
        if table is None:
            left_out += 1
            continue
        rows = word_maps(trace, AttentionKind.ENCODER, table)[:, case.pronoun]
        nearest = abs(case.antecedent - case.pronoun) < abs(case.other - case.pronoun)
        group, rule = " and ".join(case.people), np.array([int(nearest)])
        right = {
            "of two": rows[:, case.antecedent] > rows[:, case.other],
            "of all words": rows.argmax(-1) == case.antecedent,
        }
        for name, values in right.items():
            hits[name].append(Hits(group, 1, values.astype(np.int64), rule))
    findings = {
        name: compare(found, translator.config.n_heads, ["nearest person"]) for name, found in hits.items()
    }
    return {
        "sentences": len(hits["of two"]),
        "skipped": left_out,
        "findings": {name: _rounded(found) for name, found in findings.items() if found is not None},
    }


def _rounded(finding: Finding) -> dict[str, Any]:
    values = asdict(finding)
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}
