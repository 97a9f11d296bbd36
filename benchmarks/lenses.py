"""Cost of every measure beside the weight, as a ratio to one recorded forced pass in the same run.

    python benchmarks/lenses.py [--model en-pt] [--tokens 13 32 64] [--repeats 5] [--memory 1024]

Source and target have the given number of tokens. An effect is measured for every key of one row of one head.
With `--memory`, the largest growth of the process at that many tokens is printed instead, measure by measure,
beside that of a recorded forced pass.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.interleave import interleaved, report
from explorer.lenses.measures.attribution import alti, attribution, saliency
from explorer.lenses.measures.effect import Cut, Effects, effect
from explorer.lenses.measures.stream import carried, score_parts
from transformer import Capture, Translator, load_translator
from transformer.config import AttentionKind

RESULT = Path(tempfile.gettempdir()) / f"lenses-{os.getpid()}"
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


def print_memory(name: str, tokens: int) -> int:
    """Prints by how much each measure lets the process grow at its peak, each in a process of its own."""
    reference = 0.0
    for measure in ("forced pass", "carried", "attribution", "score parts", "effect, one cell", "ALTI+"):
        pid = os.fork()
        if pid == 0:
            grown_by(name, tokens, measure)
            os._exit(0)
        os.waitpid(pid, 0)
        grown = float(RESULT.read_text())
        reference = reference or grown
        print(f"{tokens} tokens, {measure:18} {grown:8.0f} MB at the peak, ratio {grown / reference:5.2f}")
    RESULT.unlink()
    return 0


def grown_by(name: str, tokens: int, measure: str) -> None:
    """Writes the growth of this process, in MB, from the opened model to the peak of one measure."""
    torch.set_num_threads(1)
    translator = load_translator(MODELS / name)
    text = text_of(translator, tokens)
    run = translator.force(text, text, capture=Capture(residual=True))
    model, step = translator.model, len(run.steps) // 2
    makers = {
        "forced pass": lambda: translator.force(text, text, capture=Capture(residual=True)),
        "carried": lambda: carried(model, run, "cross", 1, 0),
        "attribution": lambda: attribution(model, run, step, run.steps[step].token_id),
        "score parts": lambda: score_parts(model, run, ("cross", 1, 0), step, 1),
        # Cells follow one another in passes of bounded size, so one shows how far the process grows.
        "effect, one cell": lambda: Effects(translator, run).of([(Cut(AttentionKind.CROSS, (1,)),)]),
        "ALTI+": lambda: alti(model, run),
    }
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = memory("VmRSS")
    made = makers[measure]()
    RESULT.write_text(str(memory("VmHWM") - before))
    del made


def memory(field: str) -> float:
    """A size of this process in MB, as Linux tells it."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


def main() -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", default="en-pt")
    parser.add_argument("--tokens", type=int, nargs="+", default=[13, 32, 64])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", type=int, metavar="TOKENS")
    options = parser.parse_args()
    if options.memory is not None:
        return print_memory(options.model, options.memory)
    torch.set_num_threads(1)
    translator = load_translator(MODELS / options.model)
    model, capture = translator.model, Capture(residual=True)
    for tokens in options.tokens:
        text = text_of(translator, tokens)
        run = translator.force(text, text, capture=capture)
        step = len(run.steps) // 2
        token, against = run.steps[step].token_id, run.steps[step].alternatives[-1].token_id
        measures: dict[str, Callable[[], object]] = {
            "forced pass": partial(translator.force, text, text, capture=capture),
            "attribution": partial(attribution, model, run, step, token, against),
            "carried": partial(carried, model, run, "cross", 1, 0),
            "ALTI+": partial(alti, model, run),
            "score parts": partial(score_parts, model, run, ("cross", 1, 0), step, 1),
            "effect, one row": partial(effect, translator, run, "cross", 1, 0, "hidden", None, [step]),
            "effect, encoder row": partial(effect, translator, run, "encoder", 1, 0, "hidden", step, [step]),
            "gradient × input": partial(saliency, translator, run, step, token, against, False),
            "integrated gradients": partial(saliency, translator, run, step, token, against),
        }
        taken = interleaved(measures, options.repeats, 1)
        for name in list(measures)[1:]:
            report(f"{tokens} tokens", taken, name, "forced pass", "below 2 s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
