"""Masked words: what a model puts in the place of each, and the text with another word there."""

from __future__ import annotations

from explorer.app.address import session
from explorer.app.address.kinds import Moves
from explorer.app.server.stores import remembered
from explorer.app.server.view import View
from explorer.figures.base.bars import shown_candidates
from explorer.lenses.words.groups import reading_groups
from explorer.lenses.words.masked import Fills, fills_of
from transformer.text.words import SPACE, Group, in_bytes, is_mask, is_special, raw

SPLIT = "With this {}, the text is split into other pieces, which the model now reads."
"""Said of a word or a token that was put into a text."""


@remembered(64)
def fills(opened: View) -> Fills:
    """``fills_of`` a run, made once and then kept."""
    return fills_of(opened.translation)


def offered(opened: View) -> list[list[int | None]] | None:
    """The ids of the candidates in the place of each token; None of those that nobody can type.

    None for a file, which has no model to read another text.
    """
    if not opened.source.has_model:
        return None
    return [
        []
        if fill is None
        else [
            candidate.token_id if can_be_typed(candidate.token) else None
            for candidate in shown_candidates(fill)
        ]
        for fill in fills(opened)
    ]


def fill_word(opened: View, position: int, token_id: int) -> Moves:
    """The state's values for the text with a candidate in the place of a token."""
    model = opened.source.load()
    (piece,) = model.pieces([token_id], "source")
    return _with(opened, Group(position, position + 1, ""), written(piece))


def written(piece: str) -> str:
    """A piece as it is typed after another word; one that begins no word joins the word before."""
    return raw(piece).decode("utf-8", "replace").replace(SPACE, " ")


def can_be_typed(piece: str) -> bool:
    """Whether a text can have a piece: no special one, no byte of a character, no blank alone."""
    return not is_special(piece) and not in_bytes(piece) and piece != SPACE


def word_at(opened: View, position: int) -> Group | None:
    """The word that a token stands in; None if the token stands for no text."""
    words = reading_groups(opened.translation.source_tokens)
    word = next(word for word in words if position in word.indices)
    if word.special:
        return None
    return word


def mask_word(opened: View, position: int) -> Moves:
    """The state's values for the text with a word masked, each of its pieces by a mask."""
    word = word_at(opened, position)
    model = opened.source.load()
    assert word is not None
    assert model.config.mask_id is not None
    (mask,) = model.pieces([model.config.mask_id], "source")
    return _with(opened, word, f" {mask}" * len(word.indices))


def is_masked(opened: View, word: Group) -> bool:
    """Whether a mask stands for a word, or for a piece of it."""
    return any(map(is_mask, opened.translation.source_tokens[word.start : word.stop]))


def _with(opened: View, word: Group, text: str) -> Moves:
    """The state's values for the text with other letters in the place of some tokens."""
    run = opened.translation
    model = opened.source.load()
    before, after = model.around(run.source_text, word.start, word.stop)
    changed = (before.rstrip(" ") + text + after).strip(" ")
    pieces = [piece for _, piece in model.framed(model.cut(changed))]
    kept = [*run.source_tokens[: word.start], *run.source_tokens[word.stop :]]
    if [*pieces[: word.start], *pieces[word.stop :]] != kept:
        session.notice(SPLIT.format("word"))
    return {**session.FRESH, "text": changed, "source": word.start}
