"""`python -m lenses align`: scores every cross-attention head as a word aligner."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from lenses.words.alignment import diagonal, score
from lenses.words.gold_links import CrossAlignments, align_gold
from transformer.commands.arguments import model_command, percent, shared_model, write
from transformer.text.links import GoldPair, read_gold


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    align = model_command(commands, "align", align_file, "score every cross-attention head as a word aligner")
    align.add_argument("--data", required=True, metavar="FILE", help="source<TAB>target<TAB>links lines")


def align_file(arguments: argparse.Namespace) -> int:
    """`align`: prints the alignment error of every cross-attention head, with gold targets forced."""
    gold = read_gold(arguments.data)
    with shared_model(arguments) as (translator, workers):
        collected = align_gold(translator, gold, workers)
        if workers.first:
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
