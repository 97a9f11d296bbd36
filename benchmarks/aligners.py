"""Compares ways to read a word alignment from cross-attention, by their error against hand-made links.

    python benchmarks/aligners.py [--model assets/models/en-de] [--gold FILE …] [--steps 3] [--rate 30]

Every target is forced. Each way is read by both rows of a word (the row that predicts it, and the row that
reads it) and by two rules (the strongest source word, and links that are strongest from both sides). The best
variant of each way is printed, by its error on the first file, with its error on every file:

- one head: its weights α;
- mean over a layer, mean over all layers: the weights, averaged over heads;
- weighted values, one head or a layer: the length ‖α f(x)‖ of what each token gives (Kobayashi et al. 2020,
  section 3); for a layer, the heads' vectors are added first;
- optimised for the target: a layer's weights after a few steps of gradient descent that make the known target
  more probable, then averaged over heads (after Zenkel et al. 2019, section 4.3, who optimise a layer that
  was trained for it; here, the model's own layer starts from its own weights).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from explorer.lenses.words.alignment import (  # noqa: E402
    AlignmentScore,
    diagonal,
    link_words,
    score,
    text_words,
    word_weights,
)
from explorer.lenses.words.links import GoldPair, Links, read_gold  # noqa: E402
from transformer import Translator, load_translator  # noqa: E402
from transformer.config import AttentionKind  # noqa: E402
from transformer.hooks import At, Hooks  # noqa: E402
from transformer.run import Translation  # noqa: E402
from transformer.text.words import word_groups  # noqa: E402

CROSS = AttentionKind.CROSS
Variant = tuple[str, str, str, str]
"""The way, the place, the rows and the rule."""


def _free(weights: torch.Tensor, own: torch.Tensor, at: At) -> torch.Tensor:
    return weights


def optimised(translator: Translator, run: Translation, layer: int, steps: int, rate: float) -> np.ndarray:
    """(heads, queries, keys): weights of a layer after gradient descent on −log p of the target."""
    config, model = translator.config, translator.model
    target = torch.tensor([run.target_ids])
    read = torch.cat([torch.tensor([[config.bos_id]]), target[:, :-1]], dim=1)
    source = torch.tensor([[*translator.ids(run.source_text), config.eos_id]])
    assert run.attention is not None
    start = torch.from_numpy(np.array(run.attention.weights(CROSS, layer)))[None]
    logits = start.clamp_min(1e-4).log().requires_grad_()
    memory = model.encode(source).detach()
    weights = f"{config.sites[CROSS].sublayer(layer).path}.weights"
    for _ in range(steps):
        free = logits.softmax(-1)
        features = model.decode(read, memory, hooks=Hooks((), {weights: [partial(_free, free)]}))
        loss = torch.nn.functional.cross_entropy(model.logits(features)[0], target[0], reduction="sum")
        (slope,) = torch.autograd.grad(loss, logits)
        logits = (logits.detach() - rate * slope).requires_grad_()
    return logits.softmax(-1)[0].detach().numpy()


def maps(
    translator: Translator, run: Translation, steps: int, rate: float
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Every way and place, with its (queries, keys)."""
    project = translator.model.output_projection
    layers: list[np.ndarray] = []
    assert run.attention is not None
    for layer in range(translator.config.sites[CROSS].n_layers):
        weights = run.attention.weights(CROSS, layer)
        layers.append(weights.mean(0))
        given = run.attention.layers[CROSS][layer].value.float().numpy() @ project(CROSS, layer)
        name = f"layer {layer + 1}"
        for head, one in enumerate(weights):
            yield "one head", f"{name}, head {head + 1}", one
            length = np.linalg.norm(given[head], axis=-1)
            yield "weighted values, one head", f"{name}, head {head + 1}", one * length
        yield "mean over a layer", name, layers[-1]
        added = np.linalg.norm(np.einsum("hqk,hkd->qkd", weights, given), axis=-1)
        yield "weighted values, a layer", name, added
        yield "optimised for the target", name, optimised(translator, run, layer, steps, rate).mean(0)
    yield "mean over all layers", "all layers", np.mean(layers, axis=0)


def found(
    translator: Translator, gold: list[GoldPair], steps: int, rate: float
) -> dict[Variant, AlignmentScore]:
    """The score of every variant over all pairs."""
    links: dict[Variant, list[Links]] = {}
    for pair in gold:
        run = translator.force(" ".join(pair.source), " ".join(pair.target))
        words = [text_words(word_groups(tokens)) for tokens in (run.source_tokens, run.target_tokens)]
        for way, place, weights in maps(translator, run, steps, rate):
            for rows in ("predicted", "read"):
                between = word_weights(weights[None], *words, rows=rows)
                for rule in ("strongest", "mutual"):
                    links.setdefault((way, place, rows, rule), []).append(link_words(between, rule)[0])
    return {variant: score(each, gold) for variant, each in links.items()}


def main() -> None:
    """Prints a table: the best variant of each way, for each rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT / "assets" / "models" / "en-de")
    parser.add_argument(
        "--gold", type=Path, nargs="+", default=[ROOT / "assets" / "sample" / "alignments.tsv"]
    )
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rate", type=float, default=30.0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    translator = load_translator(asked.model)
    files = [read_gold(path) for path in asked.gold]
    tables = [found(translator, gold, asked.steps, asked.rate) for gold in files]
    for gold, path in zip(files, asked.gold, strict=True):
        print(f"{path.name}: {len(gold)} pairs; diagonal {score(map(diagonal, gold), gold).aer:.1%}")
    first = tables[0]
    for rule in ("strongest", "mutual"):
        print(f"\nrule: {rule}")
        for way in dict.fromkeys(variant[0] for variant in first):
            best = min((v for v in first if v[0] == way and v[3] == rule), key=lambda v: first[v].aer)
            rates = "  ".join(f"{table[best].aer:6.1%}" for table in tables)
            print(f"{way:28} {rates}  {best[1]}, rows that {'read' if best[2] == 'read' else 'predict'}")


if __name__ == "__main__":
    main()
