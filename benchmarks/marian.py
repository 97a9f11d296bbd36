"""Compares this package with transformers on a model of OPUS-MT's size: translation, loading, memory.

    python benchmarks/marian.py
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 python benchmarks/marian.py --bfloat16

Both open the same model with random weights (6 + 6 layers, width 512, 8 heads, 58,000 pieces), saved by
transformers. Both write the same forced number of tokens (``</s>`` is made impossible), in turns, with the
same number of threads. Every printed line names its limit. (Set the variable on machines whose processor
reports matrix units that a process may not use.) The bound is the reference's time divided by the time of the
same encoder and only the decoder's matrix products.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.interleave import interleaved, ratio, report
from transformer import AttentionKind, Translator, load_translator
from transformer.layers import Layer
from transformer.storage.tensors import stored_tensors, weight_files

ROOT = Path(__file__).resolve().parents[1]
FULL = {"d_model": 512, "ffn": 2048, "heads": 8, "layers": 6, "pieces": 58_000}
SMALL = {"d_model": 64, "ffn": 128, "heads": 4, "layers": 2, "pieces": 9_000}
LENGTHS = ((12, 14), (32, 40))
Runs = dict[str, Callable[[], object]]


def write_model(directory: Path, shape: dict[str, int]) -> None:
    """Saves a random model whose vocabulary is the bundled one plus filler pieces."""
    from transformers import MarianConfig, MarianMTModel

    pad = write_vocabulary(directory, shape["pieces"])
    config = MarianConfig(
        vocab_size=shape["pieces"],
        d_model=shape["d_model"],
        encoder_ffn_dim=shape["ffn"],
        decoder_ffn_dim=shape["ffn"],
        encoder_layers=shape["layers"],
        decoder_layers=shape["layers"],
        encoder_attention_heads=shape["heads"],
        decoder_attention_heads=shape["heads"],
        max_position_embeddings=512,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        eos_token_id=0,
        forced_eos_token_id=None,
    )
    torch.manual_seed(0)
    model = MarianMTModel(config)
    model.final_logits_bias[0, 0] = -1e4
    model.generation_config.update(max_length=512, num_beams=1, forced_eos_token_id=None)
    model.save_pretrained(directory)


def write_vocabulary(directory: Path, pieces: int) -> int:
    """Writes the vocabulary files and returns the id of ``<pad>``."""
    model = (ROOT / "assets/models/en-de/tokenizer.model").read_bytes()
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    names = [processor.IdToPiece(number) for number in range(4, processor.get_piece_size())]
    names = ["</s>", "<unk>", *names]
    names += [f"filler {number}" for number in range(pieces - len(names) - 1)]
    for name in ("source.spm", "target.spm"):
        (directory / name).write_bytes(model)
    table = {name: number for number, name in enumerate([*names, "<pad>"])}
    (directory / "vocab.json").write_text(json.dumps(table))
    return pieces - 1


def ours(translator: Translator, text: str, target: int, beam_size: int, capture: bool) -> Callable[[], None]:
    """A run of this package; with capture, the run derives the weights of one layer of each kind."""

    def run() -> None:
        translation = translator.translate(text, beam_size=beam_size, max_length=target, capture=capture)
        assert len(translation.target_tokens) == target
        if translation.attention is not None:
            for kind in AttentionKind:
                translation.attention.weights(kind, layer=0)

    return run


def theirs(model: Any, src_ids: Tensor, target: int, beam_size: int, capture: bool) -> Callable[[], None]:
    """A run of transformers."""

    def run() -> None:
        output = model.generate(
            src_ids,
            max_new_tokens=target,
            num_beams=beam_size,
            do_sample=False,
            return_dict_in_generate=True,
            output_attentions=capture,
        )
        assert output.sequences.shape[1] == target + 1

    return run


def products(translator: Translator, src_ids: Tensor, target: int, beam_size: int) -> Callable[[], None]:
    """A run of the encoder, then, for every token, only the products with the decoder's matrices."""
    model = translator.model
    dtype = model.stack("decoder").dtype
    maps: list[tuple[Callable[[Tensor], Tensor], int]] = []
    for layer in model.stack("decoder").modules():
        if isinstance(layer, Layer) and layer.cross_attention is not None:
            own, cross, network = layer.self_attention, layer.cross_attention, layer.feed_forward
            separate = (own.q_proj, own.k_proj, own.v_proj) if own.joined is None else (own.joined,)
            maps += [(map_, model.config.d_model) for map_ in (*separate, own.out_proj)]
            maps += [(map_, model.config.d_model) for map_ in (cross.q_proj, cross.out_proj, network.inner)]
            maps.append((network.outer, model.config.d_ff))
    maps.append((model.logits, model.config.d_model))
    inputs = {width: torch.randn(beam_size, 1, width, dtype=dtype) for _, width in maps}

    @torch.inference_mode()
    def run() -> None:
        model.encode(src_ids)
        for _ in range(target):
            for multiply, width in maps:
                multiply(inputs[width])

    return run


def time_translating(translators: dict[str, Translator], references: dict[str, Any], options: Any) -> None:
    """Prints the ratios for each length and beam width."""
    exact = translators["float32"]
    word = exact.pieces([exact.tokenizer.encode("the")[0]], "source")[0].replace("▁", "")
    for source, target in LENGTHS:
        text = " ".join([word] * (source - 1))
        src_ids = torch.tensor([[*exact.ids(text), exact.config.eos_id]])
        for beam_size in (1, 4):
            label = f"{src_ids.shape[1]} → {target} tokens, {'greedy' if beam_size == 1 else 'beam of 4'}"
            runs: Runs = {
                f"{type_}, {'capture' if capture else 'no capture'}": ours(
                    translator, text, target, beam_size, capture
                )
                for type_, translator in translators.items()
                for capture in (True, False)
            }
            runs |= {
                f"{type_}, products alone": products(translator, src_ids, target, beam_size)
                for type_, translator in translators.items()
            }
            runs["transformers, capture"] = theirs(references["eager"], src_ids, target, beam_size, True)
            runs["transformers, no capture"] = theirs(references["sdpa"], src_ids, target, beam_size, False)
            seconds = interleaved(runs, options.repeats)
            report(label, seconds, "transformers, capture", "float32, capture", "at least 1.15, aim 1.3")
            report(label, seconds, "transformers, no capture", "float32, no capture", "at least 1.0")
            if "bfloat16" in translators:
                report(label, seconds, "transformers, capture", "bfloat16, capture", "at least 2")
            for type_ in translators:
                bound, low, high = ratio(seconds, "transformers, capture", f"{type_}, products alone")
                print(f"{label}: the bound of {type_} = {bound:.3f} (from {low:.3f} to {high:.3f})")


def time_loading(directory: Path, repeats: int) -> None:
    """Prints the ratio of the loading times, with warm files."""
    from transformers import MarianMTModel

    runs: Runs = {
        "load_translator": lambda: load_translator(directory),
        "from_pretrained": lambda: MarianMTModel.from_pretrained(directory).eval(),
    }
    seconds = interleaved(runs, repeats, warm_up=1)
    report("loading", seconds, "from_pretrained", "load_translator", "at least 1.0")


def print_peak(directory: Path) -> None:
    """Prints how much peak memory rises during loading, as a share of the weights (on Linux)."""
    Path("/proc/self/clear_refs").write_text("5")  # reset the recorded peak
    before = peak_bytes()
    translator = load_translator(directory)
    rise = peak_bytes() - before
    weights = sum(parameter.nbytes for parameter in translator.model.parameters())
    stored = sum(tensor.nbytes for tensor in stored_tensors(weight_files(directory)).values())
    print(
        f"loading: peak / weights = {rise / weights:.3f} (wanted at most 1.2); "
        f"{weights / 1e6:.0f} MB of weights from {stored / 1e6:.0f} MB"
    )


def peak_bytes() -> int:
    """Peak memory of this process, including mapped files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def main() -> None:
    """Runs all comparisons."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="use a tiny model, to try the script")
    parser.add_argument("--bfloat16", action="store_true", help="also measure decoding in bfloat16")
    parser.add_argument("--peak", type=Path, metavar="DIR", help="measure only the memory needed to load DIR")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    if options.peak is not None:
        print_peak(options.peak)
        return
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), options)


def compare(directory: Path, options: argparse.Namespace) -> None:
    """Creates the model and prints all comparisons."""
    from transformers import MarianMTModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    write_model(directory, SMALL if options.small else FULL)
    types = ("float32", "bfloat16") if options.bfloat16 else ("float32",)
    translators = {type_: load_translator(directory, dtype=type_) for type_ in types}
    references = {
        kind: MarianMTModel.from_pretrained(directory, attn_implementation=kind).eval()
        for kind in ("eager", "sdpa")
    }
    time_translating(translators, references, options)
    del translators, references
    time_loading(directory, 5)
    script = [sys.executable, __file__, "--peak", str(directory), "--threads", str(options.threads)]
    subprocess.run(script, check=True)


if __name__ == "__main__":
    main()
