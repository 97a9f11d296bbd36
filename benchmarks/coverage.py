"""Which translations are named as leaving out the end: 30 whole and 30 cut ones of each bundled pair.

Whole ones are translated sentence by sentence: 10 single sentences of the sample, 20 texts of two to six. Cut
ones are the same with the first half of the words of their translation.

    python benchmarks/coverage.py
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from transformer import Translator, load_translator  # noqa: E402
from transformer.requests import LEFT_OUT  # noqa: E402
from transformer.text.pairs import read_pairs  # noqa: E402

ASSETS = ROOT / "assets"
COUNT = 30


def main() -> None:
    """Prints a line for each model."""
    for name in ("en-pt", "en-de"):
        whole, cut = measured(load_translator(ASSETS / "models" / name), name)
        print(f"{name}: {cut} of {COUNT} cut and {whole} of {COUNT} whole translations are named")


def measured(translator: Translator, name: str, count: int = COUNT) -> tuple[int, int]:
    """How many whole and how many cut translations are named."""
    named = [0, 0]
    for text, translation in texts(translator, name, count):
        words = translation.split()
        for i, output in enumerate((translation, " ".join(words[: len(words) // 2]))):
            named[i] += LEFT_OUT in translator.force(text, output).notes
    return named[0], named[1]


def texts(translator: Translator, name: str, count: int) -> Iterator[tuple[str, str]]:
    """Texts with whole translations."""
    sources = [pair.source for pair in read_pairs(ASSETS / "sample" / f"tatoeba-{name}.tsv.gz")]
    random.Random(54).shuffle(sources)
    long = iter(text for text in sources if len(text.split()) >= 6)
    for i in range(count):
        text = " ".join(next(long) for _ in range((1, 2, 3, 4, 1, 6)[i % 6]))
        yield text, translator.translate_text(text, capture=False).text


if __name__ == "__main__":
    main()
