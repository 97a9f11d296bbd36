"""`python -m lab cost`: what kinds of layers cost on this machine, and what decoding costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from lab.cost import decoding
from lab.cost.fitting import meeting
from lab.cost.layers import HEADS
from lab.cost.measuring import FITTED_FROM, LENGTHS, WIDTHS, machine, measure_layers
from lab.cost.table import BLOCK, KERNEL, LAYERS, NEIGHBOURHOOD, WRITTEN
from lab.measurement import Folder, Json, measurement, one_thread, report
from lab.study import Chart, Study, chart, curves, interval
from transformer.runs.translator import load_translator


def told(found: Json) -> Study:
    """Table 1 of the paper, beside what layers of each kind take here."""
    widths, lengths, machine = found["widths"], found["lengths"], found["machine"]
    width = "256" if "256" in widths else next(iter(widths))
    targets, ways = found["decoding"]["lengths"], found["decoding"]["ways"]
    took = {
        way: [a / b for a, b in zip(cells["milliseconds"], ways["parallel"]["milliseconds"], strict=True)]
        for way, cells in ways.items()
    }
    kinds, fitted = widths[width], [n for n in lengths if n >= found["fitted_from"]] or lengths

    def power(kind: str, what: str) -> str:
        cell = kinds[kind][what]
        return "an unknown power of n" if cell is None else f"n to the power {cell['value']:.2f}"

    met = [
        ("measured", f"d = {each}", round(at, -1))
        for each, cells in widths.items()
        if (at := meeting(lengths, *(cells[kind]["milliseconds"] for kind in ("attention", "recurrent"))))
    ]
    return Study(
        topic="Training",
        question="What does a layer of each kind cost, and how does it grow with the text?",
        finding=f"At d = {width}, from {fitted[0]:,} to {fitted[-1]:,} tokens, the time of self-attention "
        f"grows like {power('attention', 'time')}, that of an LSTM like {power('recurrent', 'time')}; fused "
        f"attention keeps its memory at {power('attention', 'memory')}.",
        parts=[
            "Table 1 of the paper counts the products of a layer for n tokens of d numbers.",
            Chart(
                "table",
                f"Table 1: n tokens of d numbers, a kernel of {found['kernel']}, a neighbourhood of "
                f"{NEIGHBOURHOOD}",
                "A table of four kinds of layers: complexity, sequential operations and the longest path.",
                ("layer", "complexity", "sequential operations", "longest path"),
                [
                    (layer.name, *map(_written, (layer.complexity, layer.sequential, layer.path)))
                    for layer in LAYERS.values()
                ],
            ),
            "A layer with random weights reads n random vectors here. On logarithmic axes a power of n is a "
            "straight line, its exponent the slope. Fixed costs flatten the left end; projections (n · d²) "
            "keep self-attention below n².",
            *(
                curves(
                    f"{what} of one pass, d = {width}",
                    ("layer", "n, tokens", unit),
                    {
                        _name(kind): zip(lengths, cells[quantity], strict=True)
                        for kind, cells in kinds.items()
                    },
                    "xy",
                )
                for what, quantity, unit in (
                    ("Processor time", "milliseconds", "ms"),
                    ("Memory", "megabytes", "MB"),
                )
            ),
            "The most that all tensors of the pass hold at once, weights not counted. Fused self-attention "
            "computes the same as the written-out one, but keeps no n × n matrix. No count of products "
            "explains a time that grows faster than n²; matrices too large for the processor's caches may.",
            *(
                chart(
                    "dots",
                    f"Power of n with which {what} grows",
                    ("d", "layer", "power of n", "low", "high"),
                    [
                        (f"d = {each}", _name(kind), *interval(cells[what]))
                        for each, found_there in widths.items()
                        for kind, cells in found_there.items()
                        if cells[what]
                    ],
                )
                for what in ("time", "memory")
            ),
            "Counted, self-attention costs more than a recurrent layer from n = d on. Measured, that point "
            "lies elsewhere: a step of an LSTM has eight d × d products where self-attention has four for "
            "each token, and since no step can begin before the previous one has ended, each has a single "
            "row.",
            chart(
                "bars",
                "Length from which self-attention takes longer than the LSTM",
                ("how", "width", "tokens"),
                [*(("counted", f"d = {each}", float(each)) for each in widths), *met],
            ),
            "**One pass, or one pass per token.** In training, one pass computes all positions of a target. "
            "Inference needs a pass per token: with a cache, a pass computes one position; without one, all "
            f"positions so far. At {targets[-1]} target tokens the decoder of {found['decoding']['model']} "
            f"takes {took['cached'][-1]:.1f} times as long token by token with a cache, and "
            f"{took['again'][-1]:.0f} times without.",
            curves(
                f"Processor time of the decoder, a source of {found['decoding']['source']} tokens",
                ("way", "tokens of the target", "ms"),
                {_WAYS[way]: zip(targets, cells["milliseconds"], strict=True) for way, cells in ways.items()},
                "xy",
            ),
            curves(
                "Times as long as one pass",
                ("way", "tokens of the target", "times"),
                {_WAYS[way]: zip(targets, cells, strict=True) for way, cells in took.items()},
            ),
        ],
        method=f"The least of {found['repeats']} runs, in processor time; {machine['processor']}, "
        f"{machine['threads']} thread, torch {machine['torch']}. Exponents: a straight line through the "
        f"logarithms, with the line's 95 % interval. Restricted attention in blocks of {found['block']} and "
        "their neighbours.",
        sources="Vaswani et al. 2017, Table 1 and section 4.",
    )


_WAYS = {
    "parallel": "all at once, as in training",
    "cached": "one by one, keys and values kept",
    "again": "one by one, computed again",
}


def _written(formula: str) -> str:
    """A term of Table 1 without LaTeX."""
    for latex, text in ((r" \cdot ", " · "), ("^2", "²"), (r"\log_k", "log_k")):
        formula = formula.replace(latex, text)
    return formula


def _name(kind: str) -> str:
    return "self-attention, written out" if kind == WRITTEN else LAYERS[kind].name


@measurement("assets/cost.json", studies={"cost": told})
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
