"""Small mBART-50 and BART models as transformers saves them, with the published layout of files."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from m2m_models import pieces
from marian_models import random_of, save
from t5_models import LINES


def write_mbart(directory: Path, **options: Any) -> Path:
    """Makes and saves an mBART-50 model; ``options`` as for ``_write``."""
    from transformers import MBartConfig, MBartForConditionalGeneration

    directory.mkdir(parents=True, exist_ok=True)
    (directory / "sentencepiece.bpe.model").write_bytes(pieces("unigram"))
    count = sentencepiece.SentencePieceProcessor(model_proto=pieces("unigram")).get_piece_size()
    usual = {"scale_embedding": True, "decoder_start_token_id": 2, "vocab_size": count + 1 + 52 + 1}
    return _write(directory, MBartConfig, MBartForConditionalGeneration, usual, "relu", **options)


@cache
def merges() -> Any:
    """A byte-level BPE of 400 tokens in BART's order, with the special ones that BART has."""
    from tokenizers import ByteLevelBPETokenizer

    made = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    made.train_from_iterator(LINES * 20, vocab_size=400, min_frequency=1, special_tokens=special)
    return made


def write_bart_vocabulary(directory: Path, whole: bool = False) -> int:
    """Writes vocab.json and merges.txt, or tokenizer.json as well; returns the number of pieces."""
    from transformers import BartTokenizer

    directory.mkdir(parents=True, exist_ok=True)
    merges().save_model(str(directory))
    ids = json.loads((directory / "vocab.json").read_text())
    ids["<mask>"] = len(ids)
    (directory / "vocab.json").write_text(json.dumps(ids))
    if whole:
        BartTokenizer.from_pretrained(directory).save_pretrained(directory)
    return len(ids)


def write_bart(directory: Path, whole: bool = False, **options: Any) -> Path:
    """Makes and saves a BART model; ``options`` as for ``_write``."""
    from transformers import BartConfig, BartForConditionalGeneration

    usual = {"vocab_size": write_bart_vocabulary(directory, whole) + 2}
    rules = {"max_length": 20, "num_beams": 4, "forced_bos_token_id": 0, "forced_eos_token_id": 2}
    options["generation"] = rules | options.get("generation", {})
    return _write(directory, BartConfig, BartForConditionalGeneration, usual, "gelu", **options)


def _write(
    directory: Path,
    of_config: Any,
    of_model: Any,
    usual: dict[str, Any],
    default: str,
    *,
    seed: int = 0,
    activation: str | None = None,
    generation: dict[str, Any] | None = None,
    entries: dict[str, Any] | None = None,
    untied: bool = False,
    bare: bool = False,
    dtype: torch.dtype = torch.float32,
    shards: bool = False,
    **sizes: int,
) -> Path:
    """``sizes`` replace those of Marian's; ``entries`` are entries of the config."""
    choices = usual | (entries or {})
    choices |= {"activation_function": activation or default, "tie_word_embeddings": not untied}
    model = random_of(of_config, of_model, choices, seed, sizes)
    _spread_positions(model, seed)
    save(directory, model, generation or {"max_length": 20, "num_beams": 4}, dtype, shards, bare)
    return directory


def _spread_positions(model: Any, seed: int) -> None:
    """Learned positions, each its own; the two that no token has are far too long."""
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:
                parameter.normal_(std=0.3, generator=generator)
                parameter[:2] = 99.0
