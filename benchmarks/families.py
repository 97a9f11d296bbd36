"""Compares this package with transformers on T5 and NLLB: greedy search with every attention kept.

    python benchmarks/families.py

Random weights in the shape per layer of T5-small (width 512, 8 heads of 64, 2,048 units, 6 + 6 layers) and
of NLLB-200-600M (width 1,024, 16 heads, 4,096 units; 3 + 3 of its 12 + 12 layers), with 32,000 pieces, so
that two copies fit in memory. Both write the same number of tokens (the end is forbidden), in turns, with the
same number of threads. transformers returns its weights; this package keeps what they are derived from, and
derives one layer of each kind.

    python benchmarks/families.py --peak

prints instead by how much the peak of memory rises while each model opens, as a share of its weights, each
in a process of its own: NLLB with 8 + 8 layers; mBART and BART too, in the shape per layer of their large
ones, 3 + 3 layers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import sentencepiece
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.interleave import interleaved, report
from benchmarks.marian import ours, print_peak, theirs
from transformer import load_translator
from transformer.families.bart import PIECES_FILE as M2M_PIECES
from transformer.families.t5 import PIECES_FILE as T5_PIECES

ROOT = Path(__file__).resolve().parents[1]
ROWS = 32_000
LANGUAGES = "eng_Latn deu_Latn"
TEXT = "The old house on the hill is not for sale, and nobody knows who lives in it."


def write_pieces(path: Path, **ids: Any) -> int:
    """A small vocabulary, trained on this repository's README; returns its number of pieces."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=path.open("wb"),
        vocab_size=600,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        **ids,
    )
    return int(sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes()).get_piece_size())


def write_t5(directory: Path, layers: int) -> Any:
    """Saves a random T5 and returns its class."""
    from transformers import T5Config, T5ForConditionalGeneration

    write_pieces(directory / T5_PIECES, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    model = T5ForConditionalGeneration(T5Config(vocab_size=ROWS, num_layers=layers))
    model.generation_config.update(max_length=512, suppress_tokens=[1], decoder_start_token_id=0)
    model.save_pretrained(directory)
    return T5ForConditionalGeneration


def write_nllb(directory: Path, layers: int) -> Any:
    """Saves a random NLLB and returns its class."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    count = write_pieces(directory / M2M_PIECES)
    model = M2M100ForConditionalGeneration(
        M2M100Config(vocab_size=ROWS, encoder_layers=layers, decoder_layers=layers)
    )
    forced = count + 1 + 41  # German
    model.generation_config.update(max_length=512, suppress_tokens=[2], forced_bos_token_id=forced)
    model.save_pretrained(directory)
    return M2M100ForConditionalGeneration


def write_large(directory: Path, kind: str) -> None:
    """Saves a random mBART-50 or BART: width 1,024, 16 heads, 4,096 units."""
    import transformers

    directory.mkdir(parents=True, exist_ok=True)
    if kind == "MBart":
        write_pieces(directory / M2M_PIECES)
    else:
        from tokenizers import ByteLevelBPETokenizer

        made = ByteLevelBPETokenizer()
        special = ["<s>", "<pad>", "</s>", "<unk>"]
        made.train([str(ROOT / "README.md")], vocab_size=600, special_tokens=special)
        made.save_model(str(directory))
    of = getattr(transformers, f"{kind}Config")(
        vocab_size=ROWS, encoder_layers=3, decoder_layers=3, decoder_start_token_id=2
    )
    getattr(transformers, f"{kind}ForConditionalGeneration")(of).save_pretrained(directory)


def write(name: str, directory: Path, layers: int | None = None) -> Any:
    """Saves the model of a name."""
    if name == "T5-small":
        return write_t5(directory, layers or 6)
    if name == "NLLB-600M":
        return write_nllb(directory, layers or 3)
    return write_large(directory, name.removesuffix("-large"))


def print_peaks() -> None:
    """Prints the peak of every model: written here, opened in a process of its own."""
    for name in ("T5-small", "NLLB-600M", "MBart-large", "Bart-large"):
        with tempfile.TemporaryDirectory() as folder:
            write(name, Path(folder), {"NLLB-600M": 8}.get(name))
            print(name, end=", ", flush=True)
            subprocess.run([sys.executable, __file__, "--open", folder], check=True)


def compare(name: str, directory: Path, made: Any, text: str, options: argparse.Namespace) -> None:
    """Prints the time of a search with capture against the reference's, and without both."""
    translator = load_translator(directory)
    eager, fused = (
        made.from_pretrained(directory, attn_implementation=kind).eval() for kind in ("eager", "sdpa")
    )
    ids = torch.tensor([[*translator.ids(text), translator.config.eos_id]])
    for target in (14, 40):
        runs = {
            "ours": ours(translator, text, target, 1, True),
            "reference": theirs(eager, ids, target, 1, True),
            "ours, bare": ours(translator, text, target, 1, False),
            "reference, bare": theirs(fused, ids, target, 1, False),
        }
        seconds = interleaved(runs, options.repeats)
        told = f"{name}, {ids.shape[1]} → {target} tokens"
        report(f"{told}, capture", seconds, "reference", "ours", "at least 1.3")
        report(f"{told}, no capture", seconds, "reference, bare", "ours, bare", "at least 1")


def main() -> None:
    """Creates the models, one after the other, and prints all comparisons."""
    from transformers.utils import logging

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--layers", type=int, default=None, help="of each stack, instead of 6 and 3")
    parser.add_argument("--peak", action="store_true", help="print the peak of memory while models open")
    parser.add_argument("--open", type=Path, default=None, help="print that of one directory")
    options = parser.parse_args()
    if options.open:
        print_peak(options.open)
        return
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.manual_seed(0)
    if options.peak:
        print_peaks()
        return
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        made = write_t5(directory, options.layers or 6)
        compare("T5-small", directory, made, f"summarize: {TEXT}", options)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        made = write_nllb(directory, options.layers or 3)
        compare("NLLB-600M", directory, made, f"{LANGUAGES} {TEXT}", options)


if __name__ == "__main__":
    main()
