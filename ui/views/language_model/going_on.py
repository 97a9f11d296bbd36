"""Continuing a text with another token: the prompt becomes the text so far and that token."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

from figures.base import labels
from figures.base.bars import shown_candidates
from ui.address import session
from ui.server import catalogue
from ui.server.opened import Opened

_BYTE = re.compile("<0x[0-9A-F]{2}>")
_SPLIT = "With this token, the text is split into other pieces, which the model now reads."


def take(
    opened: Opened,  # the text
    step: int,  # the step, from 0
    token_id: int,  # one of the step's candidates
) -> dict[str, Any]:
    """The state's values for continuing with a candidate; it and the token it replaces count as tried."""
    run = opened.translation
    if token_id == run.steps[step].token_id:
        return {}
    session.tried().update((_place(opened, step), each) for each in (token_id, run.steps[step].token_id))
    wanted, writer = (*run.target_ids[:step], token_id), catalogue.writer(opened.asked.model)
    prompt = writer.generator.text(wanted)
    found = writer.ids(prompt)
    if found != wanted:
        session.notice(_SPLIT)
    return {**session.FRESH, "prompt": prompt, "step": len(found) - 1}


def offered(opened: Opened) -> tuple[list[list[int | None]], list[list[int]]]:
    """The ids of the candidates of each step, and of those that the visitor has tried.

    A token that nobody can type is not offered: None stands for its id.
    """
    run, tried = opened.translation, session.tried()
    rows = [shown_candidates(step) for step in run.steps]
    ids = [[each.token_id if _typed(each.token) else None for each in row] for row in rows]
    found = [
        [each.token_id for each in row if (_place(opened, i), each.token_id) in tried]
        for i, row in enumerate(rows)
    ]
    return ids, found


def _typed(token: str) -> bool:
    """Whether a text can end with a token: not with a mark, with one byte of a character, or with a blank."""
    text = token.strip(labels.WORD_START)
    return bool(text) and not labels.is_special(text) and not _BYTE.fullmatch(text)


def _place(opened: Opened, step: int) -> tuple[Hashable, ...]:
    """The tokens before a step."""
    return opened.asked.model, opened.translation.target_ids[:step]
