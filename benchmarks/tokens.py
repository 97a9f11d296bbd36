"""Time of a greedy step of every bundled translation model, as a ratio to `en-de` in the same run.

    python benchmarks/tokens.py [--repeats 8]

Each model translates the same sentences with its own pieces, recorded as the app does and without recording,
in one thread. The time is per written token; models take turns. Then the two layouts of each matrix of a
decoder layer, for a product with one row, and `en-pt` with and without one product for queries, keys and
values.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.interleave import interleaved, report
from transformer import Translator, load_translator
from transformer.attention import MultiHeadAttention
from transformer.layers import Layer

MODELS = Path(__file__).resolve().parents[1] / "assets" / "models"
NAMES = ("en-de", "en-pt")
TEXTS = (
    "The woman who wrote the book is my sister.",
    "I would like to know whether the trains are running today because of the snow.",
    "The cat sat on the mat.",
)


def written(translator: Translator, record: bool) -> int:
    """Translates the sentences; returns the number of tokens written."""
    return sum(len(translator.translate(text, capture=record).target_tokens) for text in TEXTS)


def compare_layouts(model: Translator, repeats: int) -> None:
    """Prints, for each shape (outputs, inputs), the time from (in, out) as a share of (out, in)."""
    layers = [layer for layer in model.model.stack("decoder").modules() if isinstance(layer, Layer)]
    for name, maps in {
        "W^O": [layer.self_attention.out_proj for layer in layers],
        "W_1": [layer.feed_forward.inner for layer in layers],
        "W_2": [layer.feed_forward.outer for layer in layers],
    }.items():
        plain = [each.weight.data.contiguous() for each in maps]
        turned = [each.t().contiguous().t() for each in plain]
        x = torch.randn(1, plain[0].shape[1])

        def run(matrices: list[Tensor], x: Tensor = x) -> None:
            for matrix in matrices * 20:
                linear(x, matrix)

        seconds = interleaved(
            {"inputs first": partial(run, turned), "outputs first": partial(run, plain)}, 5 * repeats
        )
        report(f"{name} {tuple(plain[0].shape)}", seconds, "inputs first", "outputs first", "the used one")


def compare_joined(model: Translator, repeats: int) -> None:
    """Prints the time with one product for queries, keys and values, as a share of that with three."""
    attentions = [each for each in model.model.modules() if isinstance(each, MultiHeadAttention)]
    products = [each.joined for each in attentions]

    def run(products: list[Any]) -> None:
        for attention, product in zip(attentions, products, strict=True):
            attention.joined = product
        written(model, True)

    runs = {"one product": partial(run, products), "three": partial(run, [None] * len(products))}
    report("en-pt, recorded", interleaved(runs, repeats), "one product", "three", "below 1")


def main() -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=8)
    options = parser.parse_args()
    torch.set_num_threads(1)
    models = {name: load_translator(MODELS / name) for name in NAMES}
    for record in (True, False):
        tokens = {name: written(model, record) for name, model in models.items()}
        print(f"{'recorded' if record else 'not recorded'}; tokens: {tokens}")
        runs = {name: partial(written, model, record) for name, model in models.items()}
        taken = interleaved(runs, options.repeats)
        per_token = {name: [seconds / tokens[name] for seconds in times] for name, times in taken.items()}
        for name in NAMES[1:]:
            report("a token", per_token, name, "en-de", "at most 1.6")
    with torch.inference_mode():
        compare_layouts(models["en-pt"], options.repeats)
    compare_joined(models["en-pt"], options.repeats)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
