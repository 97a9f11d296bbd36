"""The snapshots of a run as translators, one at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from transformer.runs.translator import Translator
from transformer.training.runs.snapshots import load_snapshot, snapshot_file, snapshot_steps


def opened(directory: Path, title: str | None = None) -> Iterator[tuple[int, Translator]]:
    """The model after each step of which there is a snapshot, in their order; only one is in memory."""
    for step in snapshot_steps(directory):
        found = load_snapshot(directory, step)
        name = f"{title or directory.name} after {step:,} step{'s' * (step != 1)}"
        yield step, Translator(found.translating, found.tokenizer, name=name, rules=found.rules)


def hashes(directory: Path) -> dict[str, str]:
    """The first digits of each snapshot's SHA-256, by step: they say which weights were measured."""
    return {
        str(step): hashlib.sha256(snapshot_file(directory, step).read_bytes()).hexdigest()[:16]
        for step in snapshot_steps(directory)
    }
