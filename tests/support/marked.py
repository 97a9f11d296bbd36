"""Tokens of tests as a vocabulary names them: a special one is more than its spelling."""

from collections.abc import Iterable

from transformer.text.words import BOS, EOS, PAD, UNK, Special


def marked(tokens: Iterable[str], special: Iterable[str] = (PAD, BOS, EOS, UNK)) -> tuple[str, ...]:
    """The tokens; those that are spelled as one of the special ones are special."""
    names = {token: EOS if token == EOS else Special(token) for token in special}
    return tuple(names.get(token, token) for token in tokens)
