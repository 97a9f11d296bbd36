"""Measures the cost of capture: time relative to no capture and to transformers, and bytes per length.

    python benchmarks/capture.py [--words]

Compares two models with the bundled model's shape and random weights: ours, and transformers' MarianMTModel.
Both translate the same number of source tokens into the same forced number of output tokens, greedily, with
the same number of threads. The ``</s>`` embedding is zero in both, so that no output ends early.

`--words` prints instead how many words of its translations `en-pt` writes a second of processor time, in one
thread, without capture and with it. MarianMTModel of that shape, with its fastest attention, reads the same
pieces and writes as many tokens for each sentence, in turns; they count as the same words.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.interleave import interleaved, ratio, report
from transformer import (
    AttentionKind,
    Capture,
    Tokenizer,
    Transformer,
    TransformerConfig,
    Translation,
    Translator,
    load_translator,
)
from transformer.audit import audit
from transformer.decoding import DecodingState, decode
from transformer.hooks import Hooks
from transformer.model import EncoderDecoder
from transformer.packed import convert
from transformer.text.pairs import read_pairs
from transformer.trace import trace_of

ASSETS = Path(__file__).resolve().parents[1] / "assets"
SHAPE: dict[str, Any] = {
    "d_model": 256,
    "d_ff": 1024,
    "n_heads": 8,
    "n_encoder_layers": 3,
    "n_decoder_layers": 3,
}


def our_model(vocab_size: int) -> EncoderDecoder:
    """Our model with random weights, laid out as if loaded; the end token is never the most probable."""
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=vocab_size, norm="pre", **SHAPE)).eval()
    model.requires_grad_(False)
    model.embedding.weight[model.config.eos_id] = 0.0
    return convert(model, "cpu")


def reference_model(like: Any, attention: str = "eager"):  # type: ignore[no-untyped-def]
    """transformers' MarianMTModel of the shape of a config, by default with explicit attention, which its
    captures need."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(  # type: ignore[call-arg]
        vocab_size=max(like.vocab_size, like.pad_id + 1, like.bos_id + 1),
        d_model=like.d_model,
        encoder_ffn_dim=like.d_ff,
        decoder_ffn_dim=like.d_ff,
        encoder_layers=like.n_encoder_layers,
        decoder_layers=like.n_decoder_layers,
        encoder_attention_heads=like.n_heads,
        decoder_attention_heads=like.n_heads,
        activation_function=like.activation,
        max_position_embeddings=2048,
        pad_token_id=like.pad_id,
        eos_token_id=like.eos_id,
        decoder_start_token_id=like.bos_id,
        forced_eos_token_id=None,
        attn_implementation=attention,
    )
    torch.manual_seed(0)
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        model.model.shared.weight[like.eos_id] = 0.0
    return model


def bundled_tokenizer() -> Tokenizer:
    """The bundled vocabulary, which sets the vocabulary size of both models."""
    return Tokenizer.load(ASSETS / "models/en-de/tokenizer.model")


def read_weights(translation: Translation) -> None:
    """Derives the weights of one layer of each kind from a capture."""
    assert translation.attention is not None
    for kind in AttentionKind:
        translation.attention.weights(kind, layer=0)


def time_capture(source: int, target: int, repeats: int) -> None:
    """Prints both ratios for one source and target length, in tokens."""
    tokenizer = bundled_tokenizer()
    model = our_model(tokenizer.vocab_size)
    translator = Translator(model, tokenizer)
    reference = reference_model(model.config)
    words = tokenizer.decode([tokenizer.source.ids["▁the"]] * (source - 1))
    src_ids = torch.tensor([[*translator.ids(words), model.config.eos_id]])

    def off() -> None:
        translation = translator.translate(words, max_length=target, capture=False)
        assert len(translation.target_tokens) == target

    def on() -> None:
        translation = translator.translate(words, max_length=target)
        assert len(translation.target_tokens) == target
        read_weights(translation)

    def transformers() -> None:
        output = reference.generate(
            src_ids,
            max_new_tokens=target,
            num_beams=1,
            do_sample=False,
            return_dict_in_generate=True,
            output_attentions=True,
        )
        assert output.sequences.shape[1] == target + 1
        assert len(output.cross_attentions) == target

    seconds = interleaved({"capture": on, "no capture": off, "transformers": transformers}, repeats)
    label = f"{src_ids.shape[1]} → {target} tokens"
    report(label, seconds, "capture", "no capture", "at most 1.15")
    report(label, seconds, "transformers", "capture", "at least 1.5")


def retained_bytes(lengths: tuple[int, ...]) -> None:
    """Prints the bytes of a capture if source and target both have n tokens, relative to all its weights."""
    model = our_model(8000)
    layers = SHAPE["n_encoder_layers"] + 2 * SHAPE["n_decoder_layers"]
    first = None
    for n in lengths:
        recorder = Hooks(Capture().parts)
        request = DecodingState(model, torch.full((1, n), 7), recorder, recorder)
        for _ in decode(request, n):
            pass
        trace = trace_of(recorder, model.config, audit)
        assert trace is not None
        first = first or trace.nbytes / n
        weights = 4 * layers * SHAPE["n_heads"] * n * n
        print(
            f"{n} tokens: {trace.nbytes / 1e6:.2f} MB kept; per token / per token at {lengths[0]} = "
            f"{trace.nbytes / n / first:.3f} (1 is linear); kept / all weights as float32 = "
            f"{trace.nbytes / weights:.3f}"
        )


def words_a_second(repeats: int, sentences: int = 40) -> None:
    """Prints words a second of processor time, of `en-pt` and of transformers, as medians over the rounds."""
    torch.set_num_threads(1)
    translator = load_translator(ASSETS / "models/en-pt")
    texts = [pair.source for pair in read_pairs(ASSETS / "sample/tatoeba-en-pt.tsv.gz")[:sentences]]
    written = [translator.translate(text, capture=False) for text in texts]
    sources = [torch.tensor([[*translator.ids(text), translator.config.eos_id]]) for text in texts]
    lengths = [len(each.target_tokens) for each in written]
    reference = reference_model(translator.config, "sdpa")

    def transformers(i: int) -> None:
        output = reference.generate(sources[i], max_new_tokens=lengths[i], num_beams=1, do_sample=False)
        assert output.shape[1] == lengths[i] + 1

    runs: dict[str, Callable[[int], object]] = {
        "en-pt, no capture": lambda i: translator.translate(texts[i], capture=False),
        "en-pt, capture": lambda i: read_weights(translator.translate(texts[i])),
        "transformers": transformers,
    }
    words = sum(len(each.text.split()) for each in written)
    speeds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        spent = dict.fromkeys(runs, 0.0)
        for i in range(sentences):
            for name in list(runs)[:: 1 if i % 2 else -1]:  # to and fro: none always finds warm caches
                start = time.process_time()
                runs[name](i)
                spent[name] += time.process_time() - start
        for name, seconds in spent.items():
            speeds[name].append(words / seconds)
    print(f"{sentences} sentences, {words} words, {sum(lengths)} tokens; words a second and core:")
    for name, found in speeds.items():
        times, low, high = ratio(speeds, name, "transformers")
        spread = f"{times:.2f} (from {low:.2f} to {high:.2f}) × transformers"
        print(f"{name}: {statistics.median(found):.0f}; {spread}")


def main() -> None:
    """Runs all measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--words", action="store_true", help="print words a second and core alone")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    if options.words:
        words_a_second(options.repeats)
        return
    for source, target in ((12, 14), (32, 40), (64, 80)):
        time_capture(source, target, options.repeats)
    retained_bytes((64, 256, 1024))


if __name__ == "__main__":
    main()
