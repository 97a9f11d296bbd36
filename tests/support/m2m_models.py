"""Small M2M-100 and NLLB-200 models as transformers saves them, with the published layout of files."""

from __future__ import annotations

import json
import random
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from marian_models import spread, trained
from safetensors.torch import load_file, save_file
from t5_models import LINES

SIZES = {"d_model": 32, "ffn": 48, "heads": 4, "encoder_layers": 2, "decoder_layers": 3}
PAIRS = {"m2m": "__en__ __de__", "nllb": "eng_Latn deu_Latn"}
"""How a text begins that shall be translated from English into German."""


@cache
def pieces(model_type: str = "bpe") -> bytes:
    """A sentencepiece model with sentencepiece's own special pieces."""
    draw = random.Random(0)
    words = [word for line in LINES for word in line.split()]
    lines = [*LINES, *(" ".join(draw.choices(words, k=8)) for _ in range(300))]
    return trained(lines, model_type=model_type, vocab_size=260)


def write_vocabulary(directory: Path, kind: str) -> int:
    """Writes the files of a vocabulary and returns its number of pieces, the languages among them."""
    (directory / "sentencepiece.bpe.model").write_bytes(pieces())
    found = sentencepiece.SentencePieceProcessor(model_proto=pieces())
    names = [found.IdToPiece(number) for number in range(3, found.get_piece_size())]
    if kind == "nllb":
        return 4 + len(names) + 202 + 1
    listed = {piece: number for number, piece in enumerate(("<s>", "<pad>", "</s>", "<unk>", *names))}
    (directory / "vocab.json").write_text(json.dumps(listed))
    return len(listed) + 100


def write_m2m(
    directory: Path,
    *,
    kind: str = "m2m",
    seed: int = 0,
    activation: str = "relu",
    generation: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    old: bool = False,
    dtype: torch.dtype = torch.float32,
    shards: bool = False,
    **sizes: int,
) -> Path:
    """Makes and saves a model; ``sizes`` replace ``SIZES``; ``old`` adds what old files hold besides."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    directory.mkdir(parents=True, exist_ok=True)
    shape, count = SIZES | sizes, write_vocabulary(directory, kind)
    made = M2M100Config(
        vocab_size=count + 3,
        d_model=shape["d_model"],
        encoder_ffn_dim=shape["ffn"],
        decoder_ffn_dim=shape["ffn"],
        encoder_attention_heads=shape["heads"],
        decoder_attention_heads=shape["heads"],
        encoder_layers=shape["encoder_layers"],
        decoder_layers=shape["decoder_layers"],
        max_position_embeddings=64,
        activation_function=activation,
    )
    model = M2M100ForConditionalGeneration(made).eval()
    model.final_logits_bias = torch.zeros(1, 1)  # asked for by ``spread``; the model has none
    spread(model, seed)
    del model.final_logits_bias
    usual = {"max_length": 20, "num_beams": 4}
    model.generation_config.update(**(usual if generation is None else generation))
    model = model.to(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save_pretrained(directory, max_shard_size=20_000 if shards else "5GB")
    values = json.loads((directory / "config.json").read_text()) | (config or {})
    (directory / "config.json").write_text(json.dumps(values))
    if old:
        path = directory / "model.safetensors"
        names = "model.encoder.version", "model.encoder.embed_positions.weights"
        more = {name: torch.ones(1) for name in names}
        save_file(load_file(path) | more, path, {"format": "pt"})
    return directory


def reference(directory: Path) -> Any:
    """transformers' model of a directory, float32, with attention that returns its weights."""
    from transformers import M2M100ForConditionalGeneration as Model

    return Model.from_pretrained(directory, attn_implementation="eager", dtype=torch.float32).eval()


def reference_ids(directory: Path, kind: str, text: str) -> list[int]:
    """transformers' ids of an English text.

    Without ``tokenizer.json``, transformers 5 leaves NLLB's languages out, or puts them behind ``<mask>``; in
    the published files they stand before it. So only the text's own pieces come from there.
    """
    from transformers import M2M100Tokenizer, NllbTokenizer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "m2m":
            return M2M100Tokenizer.from_pretrained(directory, src_lang="en")(text).input_ids
        found = NllbTokenizer.from_pretrained(directory, src_lang="eng_Latn")
    return [english(), *found(text).input_ids[1:]]


def english() -> int:
    """The id of NLLB's English: fairseq numbers the pieces, with one more at the start, then languages."""
    count = sentencepiece.SentencePieceProcessor(model_proto=pieces()).get_piece_size()
    return count + 1 + 46
