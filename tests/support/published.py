"""Models of every family of the Hub, made here as transformers saves them, beside transformers'
own."""

import json
import shutil
import tempfile
import warnings
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from bart_models import write_bart, write_mbart
from m2m_models import english, write_m2m
from marian_models import reference as model_of
from marian_models import write_marian
from parity import Pair
from safetensors.torch import load_file, save_file
from t5_models import PREFIX, write_t5

from transformer import load_translator
from transformer.families.m2m import M2M, NLLB

WRITE = {
    "marian": write_marian,
    "t5": write_t5,
    "bart": write_bart,
    "mbart": write_mbart,
    "m2m": write_m2m,
    "nllb": partial(write_m2m, kind="nllb"),
}
PAIRS = {"mbart": "en_XX de_DE", "m2m": "__en__ __de__", "nllb": "eng_Latn deu_Latn"}
"""How a text begins that shall be translated from English into German."""
CODES = {"m2m": [f"__{code}__" for code in M2M], "nllb": list(NLLB)}
"""Languages that transformers 5 leaves out where it makes a tokenizer from sentencepiece's file."""
SENTENCE = "the cat sleeps in the old house while two dogs ran over the hills ."
TEXTS = {
    "marian": "the cat sat on a hat with two red dogs .",
    "t5": f"{PREFIX}{SENTENCE}",
    "bart": "summarize the old house and the two dogs ran over the hills while birds sang .",
    **{family: f"{pair} {SENTENCE}" for family, pair in PAIRS.items()},
}
TARGETS = dict.fromkeys(TEXTS, "die Katze schläft und das Haus ist klein") | {
    "marian": "die Katze und zwei Hunde",
    "bart": "two dogs ran over the hills",
}
ADDED = {"foo": False, "tyv_Cyrl": True}
"""Tokens that somebody adds to a vocabulary, and whether they are special."""
_MADE: dict[str, Path] = {}
_KINDS = {"t5": "T5", "bart": "Bart", "mbart": "MBart50", "m2m": "Nllb", "nllb": "Nllb"}


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="published-")


def published(family: str, saved: bool = False, **options: Any) -> Path:
    """The directory of a model, written once, only read; ``saved`` with ``tokenizer.json`` and
    ``ADDED``."""
    key = f"{family} {saved} {options}"
    if key not in _MADE:
        _MADE[key] = Path(_folder().name) / str(len(_MADE))
        (write_saved if saved else WRITE[family])(
            _MADE[key], **({"family": family} if saved else {}), **options
        )
    return _MADE[key]


def copied(directory: Path, family: str, saved: bool = False, **options: Any) -> Path:
    """A copy of such a directory, to be changed."""
    return Path(shutil.copytree(published(family, saved, **options), directory / "model"))


def write_saved(directory: Path, family: str, **options: Any) -> Path:
    """Makes a model, and saves its tokenizer with transformers 5: ``tokenizer.json``, and ``ADDED``
    in it.

    These get rows that the model has to spare.
    """
    import transformers

    more: dict[str, Any] = {"entries": {"vocab_size": 256}} if family == "mbart" else {}
    WRITE[family](directory, **more, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = getattr(transformers, f"{_KINDS[family]}Tokenizer").from_pretrained(directory)
        if family in CODES:
            tokenizer.add_special_tokens({"additional_special_tokens": CODES[family]})
        for token, special in ADDED.items():
            tokenizer.add_tokens([token], special_tokens=special)
        if family in PAIRS:
            tokenizer.src_lang, tokenizer.tgt_lang = PAIRS[family].split()
        for name in ("spiece.model", "sentencepiece.bpe.model", "vocab.json", "merges.txt"):
            (directory / name).unlink(missing_ok=True)
        tokenizer.save_pretrained(directory)
    return directory


def tokenizer_of(family: str, directory: Path) -> Any:
    """transformers' tokenizer of a directory."""
    import transformers

    if (directory / "tokenizer.json").is_file():
        return transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(directory / "tokenizer.json")
        )
    kinds = _KINDS | {"marian": "Marian", "m2m": "M2M100"}
    kind = getattr(
        transformers, "MarianTokenizer" if family == "marian" else f"{kinds[family]}Tokenizer"
    )
    language = {"mbart": "en_XX", "m2m": "en", "nllb": "eng_Latn"}.get(family)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind.from_pretrained(directory, **({"src_lang": language} if language else {}))


def ids_of(family: str, directory: Path, text: str) -> list[int]:
    """transformers' ids of a text without its pair of languages.

    Without ``tokenizer.json``, transformers 5 leaves NLLB's languages out, or puts them behind
    ``<mask>``; in the published files they stand before it. So only the text's own pieces come from
    there.
    """
    ids: list[int] = _tokenizer(family, directory)(text).input_ids
    bare = family == "nllb" and not (directory / "tokenizer.json").is_file()
    return [english(), *ids[1:]] if bare else ids


_tokenizer = cache(tokenizer_of)


def pair_of(family: str, directory: Path) -> Pair:
    """The same directory, opened by this package and by the reference."""
    translator = load_translator(directory)
    ids = ids_of(family, directory, TEXTS[family].removeprefix(PAIRS.get(family, "")).strip())
    first = 0 if family == "bart" else None
    if family in PAIRS:
        first = translator.tokenizer.source.ids[PAIRS[family].split()[1]]
    return Pair(
        translator, model_of(directory), TEXTS[family], tuple(ids), translator.config.bos_id, first
    )


def changed(directory: Path, file: str = "config.json", **entries: Any) -> Path:
    """Changes entries of a JSON file, or writes it."""
    path = directory / file
    values = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(values | entries))
    return directory


def rewritten(directory: Path, **changes: torch.Tensor | None) -> Path:
    """Changes tensors of the safetensors file; None takes one out."""
    path = directory / "model.safetensors"
    state = load_file(path) | changes
    save_file(
        {name: tensor for name, tensor in state.items() if tensor is not None},
        path,
        {"format": "pt"},
    )
    return directory
