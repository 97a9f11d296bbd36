"""Model directories as transformers 5 saves them: ``tokenizer.json`` in the place of sentencepiece's file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from bart_models import write_bart, write_mbart
from m2m_models import write_m2m
from t5_models import write_t5

from transformer.families.m2m import M2M, NLLB

WRITE = {"t5": write_t5, "bart": write_bart, "mbart": write_mbart, "m2m": write_m2m, "nllb": write_m2m}
PAIRS = {"mbart": "en_XX de_DE", "m2m": "__en__ __de__", "nllb": "eng_Latn deu_Latn"}
"""How a text begins that shall be translated from English into German."""
CODES = {"m2m": [f"__{code}__" for code in M2M], "nllb": list(NLLB)}
"""Languages that transformers 5 leaves out where it makes a tokenizer from sentencepiece's file."""


def write_saved(directory: Path, family: str, added: dict[str, bool] | None = None, **options: Any) -> Path:
    """Makes a model, and saves its tokenizer with transformers 5; ``added`` says of more tokens whether they
    are special. They get rows that the model has to spare."""
    import transformers

    kinds = {"t5": "T5", "bart": "Bart", "mbart": "MBart50", "m2m": "Nllb", "nllb": "Nllb"}
    if family in ("m2m", "nllb"):
        options["kind"] = family
    if family == "mbart":
        options["made"] = {"vocab_size": 256}
    WRITE[family](directory, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = getattr(transformers, f"{kinds[family]}Tokenizer").from_pretrained(directory)
        if family in CODES:
            tokenizer.add_special_tokens({"additional_special_tokens": CODES[family]})
        for token, special in (added or {}).items():
            tokenizer.add_tokens([token], special_tokens=special)
        if family in PAIRS:
            tokenizer.src_lang, tokenizer.tgt_lang = PAIRS[family].split()
        for name in ("spiece.model", "sentencepiece.bpe.model", "vocab.json", "merges.txt"):
            (directory / name).unlink(missing_ok=True)
        tokenizer.save_pretrained(directory)
    return directory


def saved_tokenizer(directory: Path) -> Any:
    """transformers' tokenizer of such a directory."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_file=str(directory / "tokenizer.json"))
