"""Measures what interventions cost: a translation with each sort of change, relative to one without.

    python benchmarks/interventions.py [--tokens 20] [--repeats 15]

At the end it measures a causal trace on the bundled model, in seconds.

The model has the bundled model's shape and random weights; its ``</s>`` is never the most probable token, so
that every output has the same length. Every run is recorded. "none" is a second plain run: its ratio shows
how far the machine itself varies.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.capture import bundled_tokenizer, our_model
from benchmarks.interleave import interleaved, report
from transformer import Translator
from transformer import interventions as do
from transformer.interventions import HeadMeans

WANTED = "at most 2"


def bench_translator() -> Translator:
    """A translator of the bundled shape, with mean outputs of its heads."""
    tokenizer = bundled_tokenizer()
    model = our_model(tokenizer.vocab_size)
    config = model.config
    outputs = {
        kind: torch.randn(site.n_layers, config.n_heads, config.d_head) for kind, site in config.sites.items()
    }
    return Translator(model, tokenizer, means=HeadMeans(outputs, {}))


def every_sort(other: do.OtherRun) -> dict[str, tuple[do.Intervention, ...]]:
    """One change of every sort, and several at once."""
    sorts: dict[str, do.Intervention] = {
        "choose": do.choose(3, 50),
        "forbid": do.forbid(50),
        "prefix": do.prefix([50, 51]),
        "edit a source token": do.edit_source(1, 50),
        "drop a source token": do.drop_source(1),
        "ablate by zero": do.ablate("cross", 1, 2),
        "ablate by mean": do.ablate("decoder", 1, 2, by="mean"),
        "ablate by uniform": do.ablate("cross", 1, 2, by="uniform"),
        "ablate by previous": do.ablate("decoder", 1, 2, by="previous"),
        "ablate by first": do.ablate("encoder", 1, 2, by="first"),
        "scale": do.scale("cross", 1, None, 0.5),
        "set a row": do.set_row("cross", 1, 2, 4, {0: 0.5}),
        "hide a source token": do.hide(1),
        "mask": do.mask("decoder", forbid="past", layer=1),
        "temperature": do.temperature("cross", 1, None, 2.0),
        "without ÷ √d_k": do.unscaled("cross", 1),
        "no positions": do.no_positions("decoder"),
        "drop a sub-layer": do.drop_sublayer("decoder", 1, "self_attention"),
        "drop a LayerNorm": do.drop_norm("decoder", 1, "feed_forward"),
        "patch embeddings": do.patch(do.embeddings("encoder"), other, [1]),
        "patch a stream": do.patch(do.stream("decoder", 1, "feed_forward"), other, [1]),
        "patch a head": do.patch(do.head_output("cross", 1, 2), other, [1]),
        "patch the encoder's output": do.patch(do.encoder_output(), other, [1]),
    }
    alone: dict[str, tuple[do.Intervention, ...]] = {name: (each,) for name, each in sorts.items()}
    three = (sorts["ablate by zero"], sorts["hide a source token"], sorts["drop a sub-layer"])
    return {"none": (), **alone, "three at once": three}


def changes(tokens: int, repeats: int) -> None:
    """Times a translation with each sort of change, in turns with a plain one."""
    translator = bench_translator()
    tokenizer = translator.tokenizer
    words = tokenizer.decode([*tokenizer.encode("the cat sees the house of my friend")] * 2)
    other = do.run(words, list(range(60, 60 + tokens)))

    def translate(interventions: tuple[do.Intervention, ...]) -> Callable[[], object]:
        def run() -> None:
            done = translator.translate(words, max_length=tokens, interventions=interventions)
            assert len(done.target_tokens) == tokens

        return run

    plain = translate(())
    for name, each in every_sort(other).items():
        seconds = interleaved({name: translate(each), "plain": plain}, repeats)
        report(f"{tokens} tokens", seconds, name, "plain", WANTED)


def main() -> None:
    """Prints the ratio of every sort, and the time of a causal trace."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trace", action="store_true", help="measure the causal trace alone")
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if not options.trace:
        changes(options.tokens, options.repeats)


if __name__ == "__main__":
    main()
