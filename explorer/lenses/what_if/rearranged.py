"""The same words at other positions: a shifted sentence, or two exchanged words."""

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from explorer.lenses.words.groups import reading_groups
from transformer.audit import OUTPUT_LIMIT, PLACES_UNMADE, audit, audit_entered
from transformer.config import Place
from transformer.encodings import BiasRule, PositionalEncoding
from transformer.hooks import Capture, Hooks
from transformer.run import Translation
from transformer.text.words import Group, is_punctuation, is_special
from transformer.trace import AttentionTrace, TokenTrace, trace_of
from transformer.translator import InputError, Translator
from transformer.view import AuditReport


class OffsetEncoding(PositionalEncoding):
    """An encoding whose position 0 is position ``offset`` of another encoding."""

    def __init__(self, encoding: PositionalEncoding, offset: int) -> None:
        nn.Module.__init__(self)
        self.max_positions, self.shared = encoding.max_positions - offset, encoding.shared  # type: ignore[misc]
        self.encoding, self.offset = encoding, offset

    def added(self, length: int, first: int = 0) -> Tensor | None:
        return self.encoding.added(length, first + self.offset)

    def rotate(self, x: Tensor, first: int = 0) -> Tensor:
        return self.encoding.rotate(x, first + self.offset)

    def bias(self, layer: int) -> BiasRule | None:
        return self.encoding.bias(layer)  # which depends on distances alone


@torch.inference_mode()
def encode_moved(translator: Translator, text: str, offset: int) -> AttentionTrace:
    """Encoder self-attention of a text from position ``offset`` on; InputError if it is empty or too far."""
    model, ids = translator.model, (*translator.ids(text), translator.config.eos_id)
    moves = {"encoder.encoding": [lambda own, at: OffsetEncoding(own, offset)]}
    hooks = Hooks(Capture().parts, moves)
    try:
        model.encode(torch.tensor([ids], device=translator.device), hooks=hooks)
    except ValueError as error:
        last, most = offset + len(ids), translator.config.max_positions
        raise InputError(f"The sentence would end at position {last:,} of {most:,} positions.") from error

    def auditor(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
        entered = audit_entered(trace, model, OUTPUT_LIMIT[trace.dtype])
        return replace(audit(trace, places), unmade=(PLACES_UNMADE,)).joined(entered)

    read = TokenTrace(ids, translator.pieces(ids, "source"), translator.tokenizer.read(text), offset)
    trace = trace_of(hooks, model.config, auditor, tokens={"encoder": read})
    assert trace is not None
    return trace


class Swapped(NamedTuple):
    """A translation after two words of the source were exchanged."""

    translation: Translation  # of the changed source
    change: tuple[float, ...]  # (tokens,) distance that each encoding moved, as a share of its norm


def words_of(tokens: tuple[str, ...]) -> tuple[Group, ...]:
    """The words of a source as groups of pieces, without special tokens and punctuation."""
    groups = reading_groups(tokens)
    return tuple(g for g in groups if not is_special(g.text) and not is_punctuation(g.text))


def swapped_order(tokens: tuple[str, ...], one: int, other: int) -> tuple[int, ...]:
    """The place before of each token after two words (from 0, of ``words_of``) are exchanged."""
    words, (low, high) = words_of(tokens), sorted((one, other))
    if not 0 <= low <= high < len(words):
        raise IndexError(
            f"The sentence has {len(words)} words, counted from 0; there are no words {one} and {other}."
        )
    first, second, order = words[low], words[high], tuple(range(len(tokens)))
    if first is second:
        return order
    between, rest = order[first.stop : second.start], order[second.stop :]
    return (*order[: first.start], *second.indices, *between, *first.indices, *rest)


@torch.inference_mode()
def swap_words(translator: Translator, text: str, one: int, other: int) -> Swapped:
    """Translates a text with two words exchanged; InputError if their pieces change, IndexError if absent."""
    eos_id = translator.config.eos_id
    ids = (*translator.ids(text), eos_id)
    order = swapped_order(translator.pieces(ids, "source"), one, other)
    moved = tuple(ids[place] for place in order)
    changed = translator.tokenizer.decode(moved)
    if (*translator.ids(changed), eos_id) != moved:
        raise InputError("These two words are split into other pieces after the exchange; choose others.")
    before, after = (
        translator.model.encode(torch.tensor([row], device=translator.device))[0] for row in (ids, moved)
    )
    expected = before[list(order)]
    change = (after - expected).norm(dim=-1) / expected.norm(dim=-1)
    return Swapped(translator.translate(changed), tuple(change.tolist()))
