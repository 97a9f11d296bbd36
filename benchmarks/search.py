"""Measures what it costs to keep the tree of a beam search, relative to the same search without it.

    python benchmarks/search.py [--tokens 20 40] [--beams 4 8] [--repeats 15]

The model has the bundled model's shape and random weights; its ``</s>`` is never the most probable token, so
that every output has the same length. Attention is recorded in both runs. "again" is a second search without
the tree: its ratio shows how far the machine itself varies. The last lines say how many nodes are kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.capture import bundled_tokenizer, our_model
from benchmarks.interleave import interleaved, report
from transformer import Translator

WANTED = "at most 1.05"


def measure(translator: Translator, tokens: int, beam_size: int, repeats: int) -> None:
    """Prints the ratios of one size."""
    tokenizer = translator.tokenizer
    words = tokenizer.decode([*tokenizer.encode("the cat sees the house of my friend")] * 2)

    def search(tree: bool) -> Callable[[], object]:
        return lambda: translator.translate(words, beam_size=beam_size, max_length=tokens, tree=tree)

    runs = {"asked": search(True), "again": search(False), "not asked": search(False)}
    seconds = interleaved(runs, repeats)
    for name in ("asked", "again"):
        report(f"{tokens} tokens, beam of {beam_size}", seconds, name, "not asked", WANTED)
    found = translator.translate(words, beam_size=beam_size, max_length=tokens, tree=True).tree
    assert found is not None
    kept, most = len(found.nodes), 2 * beam_size * found.steps
    print(f"{tokens} tokens, beam of {beam_size}: {kept} nodes (at most 2 × beam × steps = {most})")


def main() -> None:
    """Prints the ratios of every size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, nargs="*", default=[20, 40])
    parser.add_argument("--beams", type=int, nargs="*", default=[4, 8])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tokenizer = bundled_tokenizer()
    translator = Translator(our_model(tokenizer.vocab_size), tokenizer)
    for tokens in options.tokens:
        for beam_size in options.beams:
            measure(translator, tokens, beam_size, options.repeats)


if __name__ == "__main__":
    main()
