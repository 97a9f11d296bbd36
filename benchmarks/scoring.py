"""Measures how much faster given translations are scored in batches than one by one.

    python benchmarks/scoring.py [--models en-de en-pt] [--pairs 200] [--repeats 5]

Both give the same log-probabilities; their largest difference is printed too. The pairs are the first of the
sample of the model's languages.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.interleave import interleaved, report  # noqa: E402
from transformer import load_translator  # noqa: E402
from transformer.batches import forced_log_probs  # noqa: E402
from transformer.text.pairs import read_pairs  # noqa: E402


def measure(name: str, count: int, repeats: int) -> None:
    """Prints the ratio for one bundled model."""
    translator = load_translator(ROOT / "assets" / "models" / name)
    pairs = read_pairs(ROOT / "assets" / "sample" / f"tatoeba-{name}.tsv.gz")[:count]

    def alone() -> list[tuple[float, ...]]:
        return [translator.force(each.source, each.target, capture=False).log_probs for each in pairs]

    runs = {"batched": lambda: forced_log_probs(translator, pairs), "one by one": alone}
    seconds = interleaved(runs, repeats, warm_up=1)
    report(f"{name}, {len(pairs)} pairs", seconds, "batched", "one by one", "below 1")
    both = zip(forced_log_probs(translator, pairs), alone(), strict=True)
    furthest = max(abs(a - b) for ours, theirs in both for a, b in zip(ours, theirs, strict=True))
    print(f"{name}: the log p of a token differs by at most {furthest:.1e}")


def main() -> None:
    """Prints the ratio for each model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="*", default=["en-de", "en-pt"])
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.models:
        measure(name, options.pairs, options.repeats)


if __name__ == "__main__":
    main()
