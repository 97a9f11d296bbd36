"""Alignment errors of several models on the same pairs, with paired bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.measurement import Json
from lab.twins.twins import Twins
from lenses.words.alignment import diagonal, score
from lenses.words.gold_links import ERRORS, CrossAlignments, align_gold
from lenses.words.reading import Rows
from transformer.runs.bootstrap import Floats, compare, rounded
from transformer.text.links import GoldPair, Links


def alignment_errors(twins: Twins, gold: Sequence[GoldPair], baseline: str) -> Json:
    """The alignment error of each model's best head, read by the row that predicts and by the row that reads.

    A model with several heads has the advantage of a choice: its best head is chosen on these pairs.
    """
    collected = {name: align_gold(twin, gold) for name, twin in twins.items()}
    found: Json = {named: _of_rows(collected, gold, named, baseline) for named in ERRORS.values()}
    return {"pairs": len(gold), "diagonal": rounded(score(map(diagonal, gold), gold).aer)} | found


def _of_rows(
    collected: dict[str, CrossAlignments], gold: Sequence[GoldPair], rows: Rows, baseline: str
) -> Json:
    found = {name: _best(each, rows) for name, each in collected.items()}
    errors = compare({name: counts(links, gold) for name, (_, _, links) in found.items()}, error, baseline)
    return {
        name: {"head": head, "heads": heads, "error": errors[name]}
        for name, (head, heads, _) in found.items()
    }


def _best(collected: CrossAlignments, rows: Rows) -> tuple[list[int], int, Sequence[Links]]:
    """Layer and head of the best single head, the number of heads, and the head's links."""
    errors = np.array([[each.aer for each in heads] for heads in collected.scores(rows)])
    layer, head = (int(place) for place in np.unravel_index(errors.argmin(), errors.shape))
    own = next(
        links
        for aligner, links in collected.alignments.items()
        if aligner.heads == ((layer, head),) and aligner.rows == rows
    )
    return [layer, head], errors.size, own


def counts(alignments: Sequence[Links], gold: Sequence[GoldPair]) -> Floats:
    """(pairs, 2): |A ∩ S| + |A ∩ P| and |A| + |S| of each pair."""
    return np.array(
        [
            [len(links & pair.sure) + len(links & pair.possible), len(links) + len(pair.sure)]
            for links, pair in zip(alignments, gold, strict=True)
        ],
        np.float64,
    )


def error(sums: Floats) -> Floats:
    """The alignment error rate of summed counts (…, 2) → (…) (Och and Ney 2003)."""
    return 1 - sums[..., 0] / np.maximum(sums[..., 1], 1)
