"""Studies: each file measures something over many sentences or models, and says what was found."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from lab.measurement import Measurement


def studies() -> list[Measurement]:
    """The measurements of all files in this folder, found by looking, so that a new one needs no list."""
    found: dict[str, Measurement] = {}
    for each in pkgutil.iter_modules(__path__):
        values = vars(import_module(f"{__name__}.{each.name}")).values()
        found |= {value.name: value for value in values if isinstance(value, Measurement)}
    return list(found.values())
