"""Time of a greedy step of every bundled translation model, as a ratio to `en-de` in the same run.

    python benchmarks/tokens.py [--repeats 8]

Each model translates the same sentences with its own pieces, recorded as the app does and without recording,
in one thread. The time is per written token; models take turns.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.interleave import interleaved, report
from transformer import Translator, load_translator

MODELS = Path(__file__).resolve().parents[1] / "assets" / "models"
NAMES = ("en-de", "en-pt", "firefox-en-pt")
TEXTS = (
    "The woman who wrote the book is my sister.",
    "I would like to know whether the trains are running today because of the snow.",
    "The cat sat on the mat.",
)


def written(translator: Translator, record: bool) -> int:
    """Translates the sentences; returns the number of tokens written."""
    return sum(len(translator.translate(text, capture=record).target_tokens) for text in TEXTS)


def main() -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=8)
    options = parser.parse_args()
    torch.set_num_threads(1)
    models = {name: load_translator(MODELS / name) for name in NAMES}
    for record in (True, False):
        tokens = {name: written(model, record) for name, model in models.items()}
        print(f"{'recorded' if record else 'not recorded'}; tokens: {tokens}")
        runs = {name: partial(written, model, record) for name, model in models.items()}
        taken = interleaved(runs, options.repeats)
        per_token = {name: [seconds / tokens[name] for seconds in times] for name, times in taken.items()}
        for name in NAMES[1:]:
            report("a token", per_token, name, "en-de", "at most 1.6")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
