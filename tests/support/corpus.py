"""A made-up language pair that a tiny model learns within seconds: number words."""

import gzip
import random
from pathlib import Path

SOURCE_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
TARGET_WORDS = ("eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn")


def number_pairs(count: int, seed: int = 0, longest: int = 6) -> list[tuple[str, str]]:
    """Sentences of two to `longest` number words and their translations."""
    draw = random.Random(seed)
    sentences = [draw.choices(range(10), k=draw.randint(2, longest)) for _ in range(count)]
    return [
        (" ".join(SOURCE_WORDS[n] for n in numbers), " ".join(TARGET_WORDS[n] for n in numbers))
        for numbers in sentences
    ]


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> Path:
    """Writes `source<TAB>target` lines; gzipped if the name ends in .gz."""
    content = "".join(f"{source}\t{target}\n" for source, target in pairs).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path
