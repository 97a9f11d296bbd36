"""This package beside transformers on random models of well-known shapes, saved by transformers.

Both open the same directory and write the same number of tokens (the end is forbidden), in turns,
with the same number of threads. transformers returns its weights; this package keeps what they are
derived from, and derives one layer of each kind. T5 and NLLB have 32,000 pieces, so that two copies
fit into memory.
"""

import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from benchmarks.package import memory, ours, theirs
from benchmarks.timing import MODELS, ROOT, Repeats, Threads, interleaved, report
from transformer import load_translator
from transformer.families.bart import PIECES_FILE as M2M_PIECES
from transformer.families.t5 import PIECES_FILE as T5_PIECES
from transformer.storage.tensors import stored_tensors, weight_files

ROWS, OPUS_ROWS = 32_000, 58_000
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


def opus_mt(directory: Path) -> Any:
    """OPUS-MT: 6 + 6 layers, width 512, 8 heads, 58,000 pieces: the bundled ones and filler."""
    from transformers import MarianConfig, MarianMTModel

    pieces = (MODELS / "en-de/tokenizer.model").read_bytes()
    processor = sentencepiece.SentencePieceProcessor(model_proto=pieces)
    names = [
        "</s>",
        "<unk>",
        *(processor.IdToPiece(i) for i in range(4, processor.get_piece_size())),
    ]
    names += [*(f"filler {i}" for i in range(OPUS_ROWS - len(names) - 1)), "<pad>"]
    for name in ("source.spm", "target.spm"):
        (directory / name).write_bytes(pieces)
    (directory / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    shape: dict[str, Any] = dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 2048)
    shape |= dict.fromkeys(("encoder_layers", "decoder_layers"), 6)
    shape |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 8)
    shape |= dict.fromkeys(("pad_token_id", "decoder_start_token_id"), OPUS_ROWS - 1)
    config = MarianConfig(
        vocab_size=OPUS_ROWS,
        d_model=512,
        max_position_embeddings=512,
        activation_function="swish",
        scale_embedding=True,
        eos_token_id=0,
        forced_eos_token_id=None,
        **shape,
    )
    model = MarianMTModel(config)
    model.final_logits_bias[0, 0] = -1e4
    model.generation_config.update(max_length=512, num_beams=1, forced_eos_token_id=None)
    model.save_pretrained(directory)
    return MarianMTModel


def t5(directory: Path) -> Any:
    """T5-small: 6 + 6 layers, width 512, 8 heads of 64, 2,048 units."""
    from transformers import T5Config, T5ForConditionalGeneration

    write_pieces(directory / T5_PIECES, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    model = T5ForConditionalGeneration(T5Config(vocab_size=ROWS))
    model.generation_config.update(max_length=512, suppress_tokens=[1], decoder_start_token_id=0)
    model.save_pretrained(directory)
    return T5ForConditionalGeneration


def nllb(directory: Path, layers: int = 3) -> Any:
    """NLLB-200-600M: width 1,024, 16 heads, 4,096 units, some of its 12 + 12 layers."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    count = write_pieces(directory / M2M_PIECES)
    config = M2M100Config(vocab_size=ROWS, encoder_layers=layers, decoder_layers=layers)
    model = M2M100ForConditionalGeneration(config)
    german = count + 1 + 41
    model.generation_config.update(max_length=512, suppress_tokens=[2], forced_bos_token_id=german)
    model.save_pretrained(directory)
    return M2M100ForConditionalGeneration


def large(directory: Path, kind: str) -> Any:
    """mBART-50 or BART: width 1,024, 16 heads, 4,096 units, 3 + 3 layers."""
    import transformers

    if kind == "MBart":
        write_pieces(directory / M2M_PIECES)
    else:
        from tokenizers import ByteLevelBPETokenizer

        tokenizer = ByteLevelBPETokenizer()
        special = ["<s>", "<pad>", "</s>", "<unk>"]
        tokenizer.train([str(ROOT / "README.md")], vocab_size=600, special_tokens=special)
        tokenizer.save_model(str(directory))
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=ROWS, encoder_layers=3, decoder_layers=3, decoder_start_token_id=2
    )
    model = getattr(transformers, f"{kind}ForConditionalGeneration")
    model(config).save_pretrained(directory)
    return model


SHAPES: dict[str, tuple[Callable[[Path], Any], str, tuple[int, ...]]] = {
    "OPUS-MT": (opus_mt, "", (1, 4)),
    "T5-small": (t5, "summarize: ", (1,)),
    "NLLB-600M": (nllb, "eng_Latn deu_Latn ", (1,)),
}
"""What writes a model, what its texts begin with, and the widths of the beams."""
PEAKS: dict[str, Callable[[Path], Any]] = {
    "OPUS-MT": opus_mt,
    "T5-small": t5,
    "NLLB-600M": partial(nllb, layers=8),
    "mBART-large": partial(large, kind="MBart"),
    "BART-large": partial(large, kind="Bart"),
}


def families(*, only: str = "", threads: Threads = 2, repeats: Repeats = 7) -> int:
    """Time of a search with capture, and without, beside transformers.

    only [NAME]: one shape: OPUS-MT, T5-small or NLLB-600M
    """
    quiet(threads)
    for name, (write, begins, beams) in SHAPES.items():
        with tempfile.TemporaryDirectory() as folder:
            if only in ("", name):
                model = write(Path(folder))
                text = f"{begins}{TEXT}"
                _compare(name, Path(folder), model, text, beams=beams, repeats=repeats)
    return 0


def _compare(
    name: str, directory: Path, model: Any, text: str, beams: tuple[int, ...], repeats: int
) -> None:
    translator = load_translator(directory)
    eager, fused = (
        model.from_pretrained(directory, attn_implementation=kind).eval()
        for kind in ("eager", "sdpa")
    )
    ids = torch.tensor([[*translator.ids(text), translator.config.eos_id]])
    for target in (14, 40):
        for beam_size in beams:
            runs = {
                "ours": ours(translator, text, target, beam_size),
                "transformers": theirs(eager, ids, target, beam_size),
                "ours, bare": ours(translator, text, target, beam_size, capture=False),
                "transformers, bare": theirs(fused, ids, target, beam_size, capture=False),
            }
            label = f"{name}, {ids.shape[1]} → {target} tokens, beam of {beam_size}"
            seconds = interleaved(runs, repeats)
            report(f"{label}, capture", seconds, "transformers", "ours", "at least 1.3")
            report(
                f"{label}, no capture", seconds, "transformers, bare", "ours, bare", "at least 1"
            )


def peaks(*, opened: Path | None = None) -> int:
    """Growth of a process while it opens a model, at its peak, as a share of the model's weights.

    opened [DIR]: measure this directory alone, in this process
    """
    quiet(2)
    if opened is None:
        for name, write in PEAKS.items():
            with tempfile.TemporaryDirectory() as folder:
                write(Path(folder))
                print(name, end=", ", flush=True)
                subprocess.run(
                    [sys.executable, "-m", "benchmarks", "peaks", "--opened", folder], check=True
                )
        return 0
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = memory("VmHWM")
    translator = load_translator(opened)
    grown = memory("VmHWM") - before
    weights = sum(parameter.nbytes for parameter in translator.model.parameters()) / 1e6
    stored = sum(tensor.nbytes for tensor in stored_tensors(weight_files(opened)).values()) / 1e6
    print(
        f"opening: peak / weights = {grown / weights:.3f} (wanted at most 1.2); "
        f"{weights:.0f} MB of weights from {stored:.0f} MB"
    )
    return 0


def quiet(threads: int) -> None:
    """So many threads, the same numbers, and no progress bars."""
    from transformers.utils import logging

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
