"""`python -m explorer align`: scores every cross-attention head as a word aligner, or writes one's links."""

from __future__ import annotations

from collections import Counter

from explorer.lenses.commands.links import LinkOptions, write_links
from explorer.lenses.words.alignment import diagonal, score
from explorer.lenses.words.gold_links import align_gold
from explorer.lenses.words.links import read_gold
from transformer.commands.lines import unread, warn_unread
from transformer.commands.models import TranslatorOptions


def align(*, model: TranslatorOptions, data: str, links: LinkOptions) -> int:
    """Score every cross-attention head as a word aligner, or write the links of one.

    The targets of the file are forced.

    data [FILE]: source<TAB>target<TAB>links lines; with --links, source<TAB>target is enough (.gz too)
    """
    if links.links:
        return write_links(model, data, links)
    gold = read_gold(data)
    with model.open_in_job() as (translator, workers):
        collected = align_gold(translator, gold, workers)
        if not workers.first:
            return 0
        texts = ((" ".join(pair.source), " ".join(pair.target)) for pair in gold)
        warn_unread(Counter(note for pair in texts for note in unread(translator, *pair)))
        predicting, reading = collected.scores("predicted"), collected.scores("read")
        baseline = score(map(diagonal, gold), gold)
        if not model.json:
            print(f"{len(gold)} pairs; diagonal baseline: AER {_percent(baseline.aer)}")
            print("layer head      AER  precision   recall   AER of the row that reads the word")
        for layer, heads in enumerate(predicting):
            for head, rate in enumerate(heads):
                read = reading[layer][head]
                values = {"layer": layer, "head": head, "aer": rate.aer, "precision": rate.precision}
                values |= {"recall": rate.recall, "aer_read": read.aer, "aer_diagonal": baseline.aer}
                cells = f"{layer + 1:5} {head + 1:4}  {_percent(rate.aer):>7}  "
                cells += f"{_percent(rate.precision):>9}  {_percent(rate.recall):>7}   {_percent(read.aer)}"
                model.write(translator, values, cells)
    return 0


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
