"""Cost of every measure beside the weight, as a ratio to one recorded forced pass in the same run.

    python benchmarks/lenses.py [--model en-pt] [--tokens 13 32 64] [--repeats 5]

Source and target have the given number of tokens. An effect is measured for every key of one row of one head.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.interleave import interleaved, report
from transformer import Capture, Translator, load_translator
from transformer.lenses.measures.attribution import attribution
from transformer.lenses.measures.carried import carried
from transformer.lenses.measures.drafts import decoder_lens, drafts
from transformer.lenses.measures.effect import effect
from transformer.lenses.measures.gradients import saliency
from transformer.lenses.measures.score_parts import score_parts

MODELS = Path(__file__).resolve().parents[1] / "assets" / "models"
WORDS = [
    "the",
    "old",
    "house",
    "and",
    "the",
    "cat",
    "by",
    "the",
    "garden",
    "with",
    "a",
    "small",
    "red",
    "door",
]


def text_of(translator: Translator, tokens: int) -> str:
    """A text of at most this many tokens, with `</s>`."""
    text = ""
    for i in range(tokens):
        longer = f"{text} {WORDS[i % len(WORDS)]}".strip()
        if len(translator.ids(longer)) + 1 > tokens:
            break
        text = longer
    return text


def main() -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", default="en-pt")
    parser.add_argument("--tokens", type=int, nargs="+", default=[13, 32, 64])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    translator = load_translator(MODELS / options.model)
    model, capture = translator.model, Capture(residual=True)
    for tokens in options.tokens:
        text = text_of(translator, tokens)
        run = translator.force(text, text, capture=capture)
        step = len(run.steps) // 2
        token, against = run.steps[step].token_id, run.steps[step].alternatives[-1].token_id
        measures = {
            "forced pass": partial(translator.force, text, text, capture=capture),
            "attribution": partial(attribution, model, run, step, token, against),
            "carried": partial(carried, model, run, "cross", 1, 0),
            "score parts": partial(score_parts, model, run, ("cross", 1, 0), step, 1),
            "effect, one row": partial(effect, translator, run, "cross", 1, 0, "hidden", None, [step]),
            "effect, encoder row": partial(effect, translator, run, "encoder", 1, 0, "hidden", step, [step]),
            "gradient × input": partial(saliency, translator, run, step, token, against, False),
            "integrated gradients": partial(saliency, translator, run, step, token, against),
            "drafts": partial(drafts, translator, run),
            "decoder lens": partial(decoder_lens, model, run, translator),
        }
        taken = interleaved(measures, options.repeats, 1)
        for name in list(measures)[1:]:
            report(f"{tokens} tokens", taken, name, "forced pass", "below 2 s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
