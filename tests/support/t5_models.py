"""Small T5 models as transformers saves them, with the names and layouts of the published
repositories."""

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from marian_models import save, trained
from safetensors.torch import load_file, save_file

LINES = (
    "translate English to German: the house is small and the cat sleeps in it .",
    "summarize: two dogs ran over the hills while birds sang in the old town .",
    "das Haus ist klein und die Katze schläft darin",
    "двадцать собак бежали по холмам под синим небом",
    "小さな 猫 が 古い 家 で 眠る 中国 漢字 一二三",
    "שלום עולם مرحبا بالعالم في المدينة القديمة",
    "नमस्ते दुनिया é è ü ñ 0 1 2 3 4 5 6 7 8 9 , : ! ?",
)
SIZES = {
    "d_model": 24,
    "d_kv": 6,
    "d_ff": 40,
    "num_heads": 3,
    "num_layers": 2,
    "num_decoder_layers": 3,
}
EXTRA = 10
PREFIX = "translate English to German: "


@cache
def pieces(seed: int = 0, symbols: tuple[str, ...] = ()) -> bytes:
    """A sentencepiece model of about 120 pieces, its ids in T5's order: padding, end, unknown."""
    draw = random.Random(seed)
    words = [word for line in LINES for word in line.split()]
    lines = [*LINES, *(" ".join(draw.choices(words, k=8)) for _ in range(300))]
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    return trained(
        lines, model_type="unigram", vocab_size=200, user_defined_symbols=list(symbols), **ids
    )


def write_t5(
    directory: Path,
    *,
    seed: int = 0,
    kind: str = "t5",
    feed_forward: str = "relu",
    tied: bool = True,
    generation: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    file: str = "safetensors",
    dtype: torch.dtype = torch.float32,
    shards: bool = False,
    old: bool = False,
    symbols: tuple[str, ...] = (),
    **sizes: int,
) -> Path:
    """Makes and saves a model; ``sizes`` replace ``SIZES``.

    Untied, the file holds another table for the output, as those of T5 1.1, and config.json says
    so. ``old`` adds the table that old files carry in cross-attention, and every name of the tied
    table.
    """
    from transformers import (
        MT5Config,
        MT5ForConditionalGeneration,
        T5Config,
        T5ForConditionalGeneration,
    )

    configs = {"t5": T5Config, "mt5": MT5Config}
    models = {"t5": T5ForConditionalGeneration, "mt5": MT5ForConditionalGeneration}
    directory.mkdir(parents=True, exist_ok=True)
    model_of_pieces = pieces(symbols=symbols)
    (directory / "spiece.model").write_bytes(model_of_pieces)
    extra = 0 if kind == "mt5" else EXTRA
    (directory / "tokenizer_config.json").write_text(json.dumps({"extra_ids": extra}))
    count = sentencepiece.SentencePieceProcessor(model_proto=model_of_pieces).get_piece_size()
    made = configs[kind](
        vocab_size=count + EXTRA + 6,  # more rows than pieces, as published models have
        feed_forward_proj=feed_forward,
        tie_word_embeddings=tied,
        decoder_start_token_id=0,
        **SIZES | sizes,
    )
    model = models[kind](made).eval()
    spread(model, seed)
    save(directory, model, {"max_length": 20} if generation is None else generation, dtype, shards)
    values = json.loads((directory / "config.json").read_text())
    values |= config or {}
    if not tied:  # as published: transformers 5 would say that they are tied
        values["tie_word_embeddings"] = False
        values.pop("scale_decoder_outputs", None)
    (directory / "config.json").write_text(json.dumps(values))
    more = {} if tied else {"lm_head.weight": drawn(seed, made.vocab_size, made.d_model)}
    if old:
        cross = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
        more[cross] = drawn(seed, 32, made.num_heads)
        shared = model.shared.weight.detach()
        more |= {f"{side}.embed_tokens.weight": shared.clone() for side in ("encoder", "decoder")}
    if more or file == "bin":
        path = directory / "model.safetensors"
        state = load_file(path) | {name: tensor.to(dtype) for name, tensor in more.items()}
        if file == "bin":
            path.unlink()
            torch.save(state, directory / "pytorch_model.bin")
        else:
            save_file(state, path, {"format": "pt"})
    return directory


def drawn(seed: int, *shape: int) -> torch.Tensor:
    """Random numbers of another table."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + 1)) * 0.2


def spread(model: Any, seed: int) -> None:
    """Random values for every parameter, spread enough to tell heads apart."""
    generator = torch.Generator().manual_seed(seed)
    widths = {"relative_attention_bias": 1.0, ".q.": 0.3, ".k.": 0.3, "shared": 0.6}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            width = next((width for part, width in widths.items() if part in name), 0.25)
            parameter.normal_(std=width, generator=generator)
            if name.endswith("layer_norm.weight"):
                parameter.add_(1.0)
