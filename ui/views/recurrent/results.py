"""Facts about the measurements for all sections: their making, the models' names, and their sizes."""

from __future__ import annotations

from typing import Any

from figures.pages.positions import twin_name
from transformer.hub.files import size
from ui.controls import inform

Json = dict[str, Any]


def unmeasured(command_name: str) -> None:
    """Says that nothing was measured yet."""
    inform(f"Nothing was measured here yet; `python -m transformer {command_name}` does it.")


def shown(each: str, results: Json) -> str:
    """Name of a model in tables and figures: its score, or Transformer."""
    return "Transformer" if each == results["reference"] else twin_name(each)


def sizes(results: Json | None) -> str:
    """Caveats before one model is called better: seeds, products, sizes."""
    told = (
        "One seed each: second seeds moved three positional twins by up to half a BLEU; no recurrent twin "
        "has a second seed. The recurrent twins were trained "
        "with bfloat16 products, the Transformer with float32; data, pieces, batches and steps are the same."
    )
    if results is None:
        return told
    listed = ", ".join(
        f"{shown(each, results)} {found['parameters'] / 1e6:.2f} M parameters ({size(found['bytes'])})"
        for each, found in results["models"].items()
    )
    return f"{told} Sizes: {listed}."
