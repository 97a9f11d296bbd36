"""Tokens of one's own as pieces by side, with those that stand for no text.

Which these are, whoever has the vocabulary says (`Marks`). Where nobody does, nothing is known of
a token but its spelling, and the names of ``SPELLED_MARKS`` are taken for such tokens. No PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

import numpy as np

from transformer.config import Side
from transformer.exports.array_numbers import WeightsError
from transformer.families.pieces import byte_name
from transformer.text.typed import without_surrogates
from transformer.text.words import BYTE_PIECE, SPACE, Special, is_punctuation

Token: TypeAlias = "str | bytes | int"
"""A text, or an id, of which nothing is known but its number."""
Tokens: TypeAlias = "Iterable[Token] | Iterable[Iterable[Token]] | Mapping[str, Iterable[Token]]"
"""Tokens once; those of queries and of keys; or by side, "encoder" and "decoder"."""
Marks: TypeAlias = "Iterable[int] | Iterable[Iterable[int]] | Mapping[str, Iterable[int]]"
"""For each token 1 (or True) if it stands for no text, else 0, in the form of ``Tokens``: the
``special_tokens_mask`` of a tokenizer of transformers."""
SPELLED_MARKS = frozenset(
    {
        *("<s>", "</s>", "<pad>", "<unk>", "<mask>", "<bos>", "<eos>", "<sep>", "<cls>"),
        *("[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]", "[BOS]", "[EOS]"),
        *("<|endoftext|>", "<|begin_of_text|>", "<|end_of_text|>", "<|im_start|>", "<|im_end|>"),
        *("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<start_of_turn>"),
    }
)
"""Names that tokenizers give to tokens that no text contains."""
SIDES: Mapping[str, Side] = {
    "encoder": "encoder",
    "source": "encoder",
    "keys": "encoder",
    "decoder": "decoder",
    "target": "decoder",
    "queries": "decoder",
}
"""The side of tokens by its name; queries and keys of one kind that differ are a decoder's and an
encoder's, as in cross-attention."""


@dataclass(frozen=True)
class TokenPieces:
    """The tokens that were given: the same for both sides, or each its own."""

    of: Mapping[Side, tuple[str, ...]] = field(default_factory=dict)
    apart: bool = False  # whether queries and keys were given apart


def token_pieces(tokens: Tokens | None, special: Marks | None = None) -> TokenPieces:
    """Tokens by side, as pieces; `special` says which of them stand for no text."""
    if tokens is None:
        if special is not None:
            raise WeightsError("Special tokens were given without the tokens that they are of.")
        return TokenPieces()
    texts = _for_each_side(tokens)
    flags = dict[Side, list[bool]]()
    if special is not None:
        by_side = _for_each_side(special, "special tokens")
        flags = {side: _flags(marks) for side, marks in by_side.items()}
    if flags and flags.keys() != texts.keys():
        raise WeightsError("Special tokens are to be given in the form of the tokens.")
    pieces = {
        side: pieces_of([*map(_text, of_side)], flags.get(side)) for side, of_side in texts.items()
    }
    return TokenPieces(pieces, len({id(of_side) for of_side in texts.values()}) > 1)


def _for_each_side(tokens: object, noun: str = "tokens") -> dict[Side, list[object]]:
    """A list for each side, one and the same for both if it was given once."""
    if isinstance(tokens, Mapping):
        named = dict[Side, list[object]]()
        for name, of_side in tokens.items():
            if name not in SIDES:
                raise WeightsError(
                    f"There is no side “{name}”; {noun} are of the encoder or the decoder."
                )
            if SIDES[name] in named:
                raise WeightsError(
                    f"The {noun} of the {SIDES[name]} are given twice: once is enough."
                )
            named[SIDES[name]] = _listed(of_side, noun)
        return named
    parts = _listed(tokens, noun)
    if len(parts) == 1 and isinstance(parts[0], list):  # in a batch of one
        parts = _listed(parts[0], noun)
    lists = [texts for texts in parts if not isinstance(texts, str | bytes) and _is_listed(texts)]
    if not lists:
        return {"encoder": parts, "decoder": parts}
    if len(lists) != 2 or len(parts) != 2:
        raise WeightsError(
            f"There are {len(parts)} lists of {noun}; give one, or those of queries and of keys."
        )
    queries, keys = map(_listed, lists)
    return {"encoder": keys, "decoder": queries}


def texts_of(tokens: object) -> list[str]:
    """Tokens of one side as texts, from a list, or an array of any framework.

    An id is its number; bytes are UTF-8; a lone surrogate, which no file can hold, becomes
    U+FFFD. WeightsError if they are anything else.
    """
    return [_text(token) for token in _listed(tokens)]


def _listed(tokens: object, noun: str = "tokens") -> list[object]:
    """What tokens, or marks of tokens, are given in, as a list."""
    if isinstance(tokens, str | bytes):
        raise WeightsError(f"The {noun} are one text; give a list with an entry for each token.")
    listed = _plain(tokens)
    if not _is_listed(listed):
        raise WeightsError(f"The {noun} {listed!r:.40} are no list with an entry for each token.")
    return [*map(_plain, listed)]


def _plain(tokens: object) -> object:
    """An array, an index of pandas, or a number of a framework as lists and numbers of Python."""
    if hasattr(tokens, "tolist"):
        return tokens.tolist()
    return tokens


def _is_listed(tokens: object) -> TypeGuard[Iterable[object]]:
    """Whether something has parts in an order; a mapping is no list of its names."""
    return isinstance(tokens, Iterable) and not isinstance(tokens, Mapping | set | frozenset)


def _text(token: object) -> str:
    """A token as a text."""
    if isinstance(token, str):
        return without_surrogates(token)
    if isinstance(token, bytes):
        return token.decode("utf-8", "replace")
    if isinstance(token, int | np.integer) and not isinstance(token, bool):
        return str(token)
    raise WeightsError(f"The token {token!r:.40} is no text.")


def _flags(marks: Sequence[object]) -> list[bool]:
    """Which tokens of a side stand for no text; WeightsError if that is not said by 0 and 1."""
    for mark in marks:
        if mark not in (0, 1):
            raise WeightsError(
                f"Special tokens are told by 0 and 1, one for each token, and not by {mark!r:.40}."
            )
    return [*map(bool, marks)]


def pieces_of(tokens: Sequence[str], special: Sequence[bool] | None = None) -> tuple[str, ...]:
    """Tokens as pieces that say where a word begins: a `▁` before it.

    Read are the marks of sentencepiece (`▁house`, and `<0xE2>` for a byte), of byte-level
    vocabularies (`Ġhouse`) and of WordPiece (`##s` goes on with a word); where there is none,
    every token is a word. Special ones keep their names; if nobody says which they are, their
    spelling does (``SPELLED_MARKS``).
    """
    if special is None:
        special = [isinstance(token, Special) or token in SPELLED_MARKS for token in tokens]
    if len(special) != len(tokens):
        raise WeightsError(
            f"There are {len(tokens):,} tokens, and it is said of {len(special):,} whether they "
            "are special."
        )
    marked = list(zip(tokens, special, strict=True))
    plain = [str(token) for token, is_mark in marked if not is_mark]
    read: Callable[[str], str] = _begun
    if any(SPACE in text or BYTE_PIECE.fullmatch(text) for text in plain):
        read = str
    elif any(text.startswith(("Ġ", "Ċ")) for text in plain):
        read = byte_name
    return tuple(Special(token) if is_mark else read(str(token)) for token, is_mark in marked)


def _begun(token: str) -> str:
    """A token without a mark as a piece: a word of its own, unless it goes on with one."""
    if token.startswith("##") and len(token) > 2:
        return token[2:]
    if is_punctuation(token):
        return token
    return f"{SPACE}{token.replace(' ', SPACE)}"
