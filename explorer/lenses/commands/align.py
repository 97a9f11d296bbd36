"""`python -m explorer align`: scores every cross-attention head as a word aligner, or writes one's links."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

from explorer.lenses.commands.links import add_link_options, asks_for_links, write_links
from explorer.lenses.words.alignment import diagonal, score
from explorer.lenses.words.gold_links import CrossAlignments, align_gold
from transformer.commands.arguments import model_command, percent, shared_model, write
from transformer.commands.lines import unread, warn_unread
from transformer.text.links import GoldPair, read_gold


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "score every cross-attention head as a word aligner, or write the links of one"
    align = model_command(commands, "align", align_file, text)
    text = "source<TAB>target<TAB>links lines; with --links, source<TAB>target is enough (.gz too)"
    align.add_argument("--data", required=True, metavar="FILE", help=text)
    add_link_options(align)


def align_file(arguments: argparse.Namespace) -> int:
    """`align`: prints the alignment error of every cross-attention head, gold targets forced; or links."""
    if asks_for_links(arguments):
        return write_links(arguments)
    gold = read_gold(arguments.data)
    with shared_model(arguments) as (translator, workers):
        collected = align_gold(translator, gold, workers)
        if workers.first:
            texts = ((" ".join(pair.source), " ".join(pair.target)) for pair in gold)
            warn_unread(Counter(note for pair in texts for note in unread(translator, *pair)))
            _write_errors(arguments, collected, gold)
    return 0


def _write_errors(
    arguments: argparse.Namespace, collected: CrossAlignments, gold: Sequence[GoldPair]
) -> None:
    predicting, reading = collected.scores("predicted"), collected.scores("read")
    baseline = score(map(diagonal, gold), gold)
    if not arguments.json:
        print(f"{len(gold)} pairs; diagonal baseline: AER {percent(baseline.aer)}")
        print("layer head      AER  precision   recall   AER of the row that reads the word")
    for layer, heads in enumerate(predicting):
        for head, found in enumerate(heads):
            read = reading[layer][head]
            values = {"layer": layer, "head": head, "aer": found.aer, "precision": found.precision}
            values |= {"recall": found.recall, "aer_read": read.aer, "aer_diagonal": baseline.aer}
            place = f"{layer + 1:5} {head + 1:4}"
            rates = f"{percent(found.aer):>7}  {percent(found.precision):>9}  {percent(found.recall):>7}"
            write(arguments, values, f"{place}  {rates}   {percent(read.aer)}")
