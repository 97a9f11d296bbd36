"""Decoders of well-known shapes beside transformers, with random weights; and the parts of a step
beside plainer forms: shared keys, rotated pairs, the logits of a prompt, the best candidates."""

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.families import quiet
from benchmarks.timing import ROOT, Repeats, Threads, interleaved, report
from transformer import Capture, Translator, load_language_model
from transformer.config import ModelConfig
from transformer.decoding import ALTERNATIVES, MOST_LOGITS, largest
from transformer.encodings import Rotary

ROWS = 49_152
PROMPTS, WRITTEN = (6, 950), 40
"""Tokens of the prompts, and tokens that are written after each."""


def smollm2(directory: Path) -> Any:
    """SmolLM2-135M: 30 layers, width 576, 9 heads on 3 keys, 1,536 units."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=ROWS,
        hidden_size=576,
        intermediate_size=1_536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=2_048,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(directory)
    return LlamaForCausalLM


def gpt2(directory: Path) -> Any:
    """GPT-2: 12 layers, width 768, 12 heads, 3,072 units."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=ROWS, bos_token_id=0, eos_token_id=0)
    GPT2LMHeadModel(config).save_pretrained(directory)
    return GPT2LMHeadModel


SHAPES: dict[str, Callable[[Path], Any]] = {"SmolLM2-135M": smollm2, "GPT-2": gpt2}


def decoders(*, only: str = "", threads: Threads = 2, repeats: Repeats = 5) -> int:
    """Greedy search with capture, and without, beside transformers; the parts of a step.

    only [NAME]: one shape: SmolLM2-135M or GPT-2; parts for the parts of a step alone
    """
    quiet(threads)
    for name, write in SHAPES.items():
        if only in ("", name):
            with tempfile.TemporaryDirectory() as folder:
                model = write(Path(folder))
                write_vocabulary(Path(folder))
                _compare(name, Path(folder), model, repeats)
    _shared_keys(repeats)
    _rotated_pairs(repeats)
    _logits_of_a_prompt(repeats)
    _best_candidates(repeats)
    return 0


def write_vocabulary(directory: Path) -> None:
    """A small byte-level vocabulary, trained on this repository's README."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1_000,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train([str(ROOT / "README.md")], trainer)
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "generation_config.json").write_text(json.dumps({"suppress_tokens": [0]}))


def _compare(name: str, directory: Path, model: Any, repeats: int) -> None:
    translator = load_language_model(directory, "cpu")
    eager, fused = (
        model.from_pretrained(directory, attn_implementation=kind).eval()
        for kind in ("eager", "sdpa")
    )
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for length in PROMPTS:
        ids = translator.tokenizer.target.encode(text[: 8 * length])[:length]
        prompt = translator.text(ids)
        ids = list(translator.ids(prompt))
        runs = {
            "ours": partial(_ours, translator, prompt, len(ids), True),
            "transformers": partial(_theirs, eager, ids, True),
            "ours, bare": partial(_ours, translator, prompt, len(ids), False),
            "transformers, bare": partial(_theirs, fused, ids, False),
            "transformers, prompt": partial(_theirs_with_prompt, fused, ids),
        }
        seconds = interleaved(runs, repeats)
        label = f"{name}, {len(ids)} + {WRITTEN} tokens"
        report(f"{label}, capture", seconds, "transformers", "ours", "at least 1.3")
        bare = "transformers, bare", "ours, bare"
        report(f"{label}, no capture", seconds, *bare, "at least 1.2")
        alike = "transformers, prompt", "ours, bare"
        report(f"{label}, no capture, candidates of the prompt", seconds, *alike, "at least 1.2")


def _ours(translator: Translator, prompt: str, given: int, capture: bool) -> Any:
    """A search; with capture, one layer of its maps, too."""
    recorded = Capture() if capture else False
    run = translator.generate(prompt, max_length=given - 1 + WRITTEN, capture=recorded, beam_size=1)
    if capture:
        run.trace.map("decoder", 0)
    assert len(run.target_ids) == given - 1 + WRITTEN
    return run


def _theirs(model: Any, ids: list[int], capture: bool, streams: bool = False) -> Any:
    """The same search; with capture, all weights are returned; with streams, all layers' outputs."""
    with torch.inference_mode():
        return model.generate(
            torch.tensor([ids]),
            max_new_tokens=WRITTEN,
            min_new_tokens=WRITTEN,
            do_sample=False,
            output_attentions=capture,
            output_hidden_states=streams,
            return_dict_in_generate=True,
            pad_token_id=0,
        )


def _theirs_with_prompt(model: Any, ids: list[int]) -> list[Any]:
    """The same search, and what ours has of each token of the prompt: ten candidates with their
    log-probabilities."""
    run = _theirs(model, ids, False, streams=True)
    (last, *_) = run.hidden_states
    with torch.inference_mode():
        blocks = torch.split(last[-1][0], 256)
        return [model.lm_head(rows).log_softmax(-1).topk(10) for rows in blocks]


def _shared_keys(repeats: int) -> None:
    """Fused attention of nine heads on three, without copies and with repeated keys."""
    for n_keys in (40, 300, 1_000):
        query = torch.randn(1, 9, 1, 64)
        key = torch.randn(1, 3, n_keys, 64)
        value = torch.randn(1, 3, n_keys, 64)
        runs = {
            "shared": partial(_many, query, key, value, False),
            "repeated": partial(_many, query, key, value, True),
        }
        seconds = interleaved(runs, repeats)
        label = f"one query, {n_keys} keys of three heads for nine"
        report(label, seconds, "repeated", "shared", "at least 1")


@torch.inference_mode()
def _many(query: Tensor, key: Tensor, value: Tensor, repeated: bool) -> None:
    for _ in range(200):
        if repeated:
            keys, values = (x.repeat_interleave(3, dim=1) for x in (key, value))
            F.scaled_dot_product_attention(query, keys, values)
        else:
            F.scaled_dot_product_attention(query, key, value, enable_gqa=True)


def _rotated_pairs(repeats: int) -> None:
    """Rotary positions by products of complex numbers, and of sines and cosines with both numbers
    of a pair."""
    config = ModelConfig(vocab_size=10, d_model=576, n_heads=9, positions="rotary")
    positions = Rotary(config, n_layers=1, causal=True)
    for length in (1, 950):
        x = torch.randn(1, 9, length, 64)
        runs = {
            "complex": partial(_rotated, positions.rotate, x),
            "pairs": partial(_rotated, partial(_by_sines, positions.turns), x),
        }
        seconds = interleaved(runs, repeats)
        report(f"{length} rows of nine heads rotated", seconds, "pairs", "complex", "at least 1")


@torch.inference_mode()
def _rotated(rotate: Callable[[Tensor], Tensor], x: Tensor) -> None:
    for _ in range(100):
        rotate(x)


def _by_sines(turns: Tensor, x: Tensor) -> Tensor:
    """Each pair (a, b) turned to (a cos − b sin, a sin + b cos)."""
    cosine, sine = turns[: x.shape[-2]].unbind(-1)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cosine - b * sine, a * sine + b * cosine], dim=-1).flatten(-2)


def _logits_of_a_prompt(repeats: int) -> None:
    """The log-probabilities of a prompt of SmolLM2's width, in smaller and larger blocks."""
    table = torch.randn(ROWS, 576)
    features = torch.randn(950, 576)
    rows = MOST_LOGITS // ROWS
    runs = {
        "used": partial(_in_blocks, table, features, rows),
        "a quarter": partial(_in_blocks, table, features, rows // 4),
        "all at once": partial(_in_blocks, table, features, len(features)),
    }
    seconds = interleaved(runs, repeats)
    for other in ("a quarter", "all at once"):
        report(f"logits of 950 rows, {rows} at a time", seconds, other, "used", "at least 1")


@torch.inference_mode()
def _in_blocks(table: Tensor, features: Tensor, n_rows: int) -> None:
    for rows in torch.split(features, n_rows):
        F.linear(rows, table).log_softmax(-1)


def _best_candidates(repeats: int) -> None:
    """The best candidates of a row, by blocks and of all at once."""
    row = torch.randn(1, ROWS)
    runs = {"by blocks": partial(_best, largest, row), "topk": partial(_best, torch.topk, row)}
    seconds = interleaved(runs, repeats)
    report(f"{ALTERNATIVES} best of {ROWS:,}", seconds, "topk", "by blocks", "at least 1")


@torch.inference_mode()
def _best(find: Callable[[Tensor, int], object], row: Tensor) -> None:
    for _ in range(200):
        find(row, ALTERNATIVES)
