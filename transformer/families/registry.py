"""The formats of models that can be opened; nothing else asks of which a model is."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from transformer.families.bart.family import Bart
from transformer.families.family import Family
from transformer.families.m2m.family import M2M
from transformer.families.marian.family import Marian
from transformer.families.mbart.family import MBart
from transformer.families.own import Own
from transformer.families.t5.family import T5
from transformer.storage.description import CONFIG_FILE

FAMILIES: tuple[Family, ...] = (Marian(), T5(), M2M(), MBart(), Bart(), Own())
"""The last one takes what no other does."""


def family_of(path: str | Path) -> Family:
    """The family of a directory."""
    return next(family for family in FAMILIES if family.owns(Path(path)))


def is_model(path: Path) -> bool:
    """True if a directory seems to hold a model, damaged or not."""
    return path.is_dir() and ((path / CONFIG_FILE).is_file() or family_of(path) is not FAMILIES[-1])


def known_names() -> str:
    """What the families of the Hub are called: "A", "A and B", or "A, B and C"."""
    *others, last = [family.name for family in FAMILIES if family.name]
    return f"{', '.join(others)} and {last}" if others else last


def published_family(names: Collection[str]) -> Family:
    """The family of a model on the Hub, known by the names of its files."""
    return next(family for family in FAMILIES if family.publishes(names))
