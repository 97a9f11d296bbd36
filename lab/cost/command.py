"""`python -m lab cost`: what kinds of layers cost on this machine, and what decoding costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from lab.cost import decoding
from lab.cost.layers import HEADS
from lab.cost.measuring import FITTED_FROM, LENGTHS, WIDTHS, machine, measure_layers
from lab.cost.table import BLOCK, KERNEL
from lab.measurement import Folder, Json, measurement, one_thread, report
from transformer.runs.translator import load_translator


@measurement("assets/cost.json")
@one_thread()
def cost(
    model: Annotated[Folder, "model whose decoder is timed"] = Path("assets/models/en-de"),
    widths: Annotated[tuple[int, ...], "values of d"] = WIDTHS,
    lengths: Annotated[tuple[int, ...], "values of n"] = LENGTHS,
    repeats: Annotated[int, "runs of each"] = 9,
) -> Json:
    """Measures time and memory of kinds of layers (Table 1 of the paper), and of decoding."""
    if wrong := [width for width in widths if width % (2 * HEADS)]:
        raise ValueError(f"--widths {wrong[0]} is not a multiple of {2 * HEADS}.")
    translator, known = load_translator(model), sorted(set(lengths))
    steps = decoding.measure_decoding(translator.model, decoding.LENGTHS, repeats)
    measured = {}
    for width, found in measure_layers(sorted(set(widths)), known, repeats):
        measured[str(width)] = found
        report(f"measured d = {width}")
    return {
        "machine": machine(),
        "repeats": repeats,
        "heads": HEADS,
        "kernel": KERNEL,
        "block": BLOCK,
        "lengths": known,
        "fitted_from": FITTED_FROM,
        "widths": measured,
        "decoding": {"model": translator.name, "source": decoding.SOURCE} | steps,
    }
