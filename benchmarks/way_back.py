"""Whether the head of a token's strongest way back matters more than another head of the same layer.

    python benchmarks/way_back.py --sentences 100

For a random token of each sentence of the bundled sample: Δ log p with the head of the strongest positive
way switched off, and with a random other head of that layer. Prints the means, their difference with a 95 %
interval (bootstrap over sentences), how often the first costs more, and how long a way back takes.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from lenses.measures.way_back import way_back  # noqa: E402
from transformer import Capture, Translator, interventions, load_translator  # noqa: E402
from transformer.text.pairs import read_lines  # noqa: E402

SHORTEST, LONGEST = 4, 12
"""Words of a sentence."""
DRAWS = 2000


def measure(
    translator: Translator, texts: list[str], chance: random.Random
) -> tuple[np.ndarray, list[float]]:
    """(sentences, 2) Δ log p without the head, and without another; and the seconds of each way back."""
    found, seconds = [], []
    for text in texts:
        run = translator.translate(text, capture=Capture(residual=True))
        step = chance.randrange(len(run.steps))
        start = time.perf_counter()
        back = way_back(translator.model, run, step, run.steps[step].token_id)
        seconds.append(time.perf_counter() - start)
        way = next((each for each in back.ways if each.value > 0), None)
        if way is None or way.head.layer is None:
            continue
        kind = "decoder" if way.writer is None else "cross"
        others = [head for head in range(run.config.n_heads) if head != way.head.head]
        changes = []
        for head in (way.head.head, chance.choice(others)):
            off = [interventions.ablate(kind, way.head.layer, head)]
            made = translator.force(run.source_text, run.target_ids, capture=False, interventions=off)
            changes.append(made.log_probs[step] - run.log_probs[step])
        found.append(changes)
    return np.array(found), seconds


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name in ("en-pt", "en-de"):
        lines = read_lines(ROOT / "assets" / "sample" / f"tatoeba-{name}.tsv.gz")
        texts = dict.fromkeys(line.split("\t")[0] for _, line in lines)
        fitting = [text for text in texts if SHORTEST <= len(text.split()) <= LONGEST]
        chance = random.Random(options.seed)
        chance.shuffle(fitting)
        translator = load_translator(ROOT / "assets" / "models" / name)
        found, seconds = measure(translator, fitting[: options.sentences], chance)
        apart, draw = found[:, 0] - found[:, 1], np.random.default_rng(options.seed)
        low, high = np.percentile(draw.choice(apart, (DRAWS, len(apart))).mean(1), (2.5, 97.5))
        own, other = found.mean(0)
        print(
            f"{name}: {len(found)} tokens · its head off {own:+.3f} nats, another of the layer {other:+.3f} "
            f"({own / other:.0f} ×) · difference {apart.mean():+.3f} [{low:+.3f}, {high:+.3f}] · costs "
            f"more in {(apart < 0).mean():.0%} · a way back {np.median(seconds):.2f} s"
        )


if __name__ == "__main__":
    main()
