"""What a page carries of a model: its weights, its pieces; and why it cannot carry some."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from transformer import Translator
from transformer.config import EncoderConfig, LanguageModelConfig, TransformerConfig
from transformer.decoding import FREE
from transformer.families.family import Json
from transformer.families.whole import Whole
from transformer.families.written import TypedPieces
from transformer.requests import LENGTH
from transformer.storage import eight_bits
from transformer.storage.description import numbers_held
from transformer.storage.tensors import serialize_tensors
from transformer.text.tokenizer import Tokenizer
from transformer.text.words import is_special

WEIGHTS, PIECES, BYTE_LEVEL = "model.safetensors", "tokenizer.model", "pieces.json"
"""The files of a model that this package has written; and the pieces of a byte-level one."""
MOST_NUMBERS = 150_000_000
"""Numbers of a model, a byte each, that a reader's browser is asked to fetch."""
MOST_IN_A_FILE = 64_000_000
"""Numbers that one HTML file holds; more lie beside it in a folder."""
_FOREIGN = "This page runs models as this package saves them; this one is of another family."
_FLAGS = ("lstrip", "rstrip", "single_word")
"""What an added piece may ask for that no page does."""


@dataclass(frozen=True)
class Carried:
    """The files of a model as a page computes it."""

    # the weights first, then the pieces, by their names: what they hold, or where they lie
    files: Mapping[str, bytes | Path]
    rounded: bool  # whether the weights were rounded to 8 bits for the page


def carried(model: Translator, path: Path) -> Carried:
    """The files of a model that a page can run.

    Those of a model of another family are made here, and the model itself gets the rounded weights,
    so that both compute alike.
    """
    if isinstance(model.tokenizer, Tokenizer):
        return Carried({name: path / name for name in (WEIGHTS, PIECES)}, rounded=False)
    packed = eight_bits.packed(model.model.state_dict())
    model.model.load_state_dict(dict(eight_bits.unpacked(path, packed)))
    pieces = model.tokenizer.target
    assert isinstance(pieces, TypedPieces)
    tables = json.dumps(byte_level_tables(pieces), ensure_ascii=False, separators=(",", ":"))
    weights = serialize_tensors(packed, {"format": "pt"})
    return Carried({WEIGHTS: weights, BYTE_LEVEL: tables.encode()}, rounded=True)


def content_of(file: bytes | Path) -> bytes:
    """What a file holds."""
    return file if isinstance(file, bytes) else file.read_bytes()


def browser_config(model: Translator) -> Json:
    """What the engine must know of a model besides its weights: the config, and the rules of its
    search."""
    return asdict(model.config) | {
        "forbidden": [token for (token,) in model.rules.forbidden],
        "other_ends": model.rules.other_ends,
        "usual_length": LENGTH,
    }


def why_not(model: Translator, path: Path, *, folder: bool = False) -> str:
    """Why a model cannot run in a browser, in one sentence; empty if it can.

    ``folder``: its files may lie beside the page.
    """
    config = model.config
    if isinstance(config, EncoderConfig):
        return "This page writes an output; this model is an encoder alone, which only reads."
    if not isinstance(config, TransformerConfig | LanguageModelConfig):
        return "This page runs Transformers; this model is recurrent."
    if isinstance(model.tokenizer, Tokenizer):
        here = all((path / name).is_file() for name in (WEIGHTS, PIECES))
        return "" if here and _searches_freely(model) and not config.languages else _FOREIGN
    pieces = getattr(model.tokenizer, "target", None)
    if not isinstance(config, LanguageModelConfig) or not isinstance(pieces, TypedPieces):
        return _FOREIGN
    if reason := unknown_rule(pieces.tokenizer):
        return reason
    if not _searches_freely(model):
        return "This model's search keeps rules of its own, which no page does."
    count = numbers_held(config)
    most = MOST_NUMBERS if folder else MOST_IN_A_FILE
    if count <= most:
        return ""
    millions = f"this one has {count / 1e6:,.0f} million"
    if count <= MOST_NUMBERS:
        return (
            f"One file holds models of up to {most / 1e6:.0f} million numbers; {millions}: write a "
            "folder, with --folder."
        )
    return f"A page runs models of up to {MOST_NUMBERS / 1e6:.0f} million numbers; {millions}."


def _searches_freely(model: Translator) -> bool:
    """Whether greedy search needs nothing but what `browser_config` says of the rules."""
    rules = replace(model.rules, forbidden=(), other_ends=(), end_id=None)
    if isinstance(model.config, LanguageModelConfig):  # the page says how long its texts get
        rules = replace(rules, max_length=None)
    return rules == FREE and all(len(tokens) == 1 for tokens in model.rules.forbidden)


# --- byte-level vocabularies ---------------------------------------------------------------------


def unknown_rule(tokenizer: Whole) -> str:
    """What the scripts do not do of a vocabulary, in one sentence; empty if they do all."""
    described = tokenizer.described()
    model = described["model"]
    unlike = (
        model.get("type") != "BPE"
        or model.get("byte_fallback")
        or model.get("continuing_subword_prefix")
        or model.get("end_of_word_suffix")
        or not tokenizer.in_bytes
    )
    if unlike:
        return "This page knows byte-level vocabularies; this model has one of another kind."
    if (described["normalizer"] or {"type": "NFC"}) != {"type": "NFC"}:
        return "This page reads texts as they were typed; this model's vocabulary changes them."
    if _splits_digits(described["pre_tokenizer"]) is None:
        return "This page splits texts by the rule of GPT-2; this model's vocabulary has another."
    if any(piece.get(flag) for piece in described["added_tokens"] for flag in _FLAGS):
        return "This model's vocabulary has pieces that take blanks along, which no page does."
    return ""


def _splits_digits(rule: Json | None) -> bool | None:
    """Whether each digit stands alone before words are split by the rule of GPT-2; None if they are
    split by another."""
    steps = (rule or {}).get("pretokenizers", [rule])
    digits = {"type": "Digits", "individual_digits": True}
    alone = steps[:1] == [digits]
    rest = steps[1:] if alone else steps
    plain = len(rest) == 1 and rest[0] is not None and rest[0].get("type") == "ByteLevel"
    if not plain or rest[0].get("add_prefix_space") or not rest[0].get("use_regex", True):
        return None
    return alone


def byte_level_tables(pieces: TypedPieces) -> Json:
    """The tables of `engine/bytelevel.js`, for a vocabulary without an `unknown_rule`."""
    described = pieces.tokenizer.described()
    ids = pieces.tokenizer.ids()
    spelled: list[str | None] = [None] * len(pieces.pieces)
    for piece, number in ids.items():
        spelled[number] = piece
    merges = described["model"]["merges"]
    return {
        "spelled": spelled,
        "names": list(map(str, pieces.pieces)),
        "merges": [merge.split(" ") if isinstance(merge, str) else merge for merge in merges],
        "added": [piece["content"] for piece in described["added_tokens"]],
        "special": [number for number, piece in enumerate(pieces.pieces) if is_special(piece)],
        "digits": _splits_digits(described["pre_tokenizer"]),
        "composed": described["normalizer"] is not None,
        "whole": bool(described["model"].get("ignore_merges")),
    }
