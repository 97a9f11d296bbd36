"""Two runs in one page: what tells them apart, and a changed run without its changes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from explorer.figures.base import labels
from transformer.interventions import Hide, Intervention
from transformer.run import Translation
from transformer.text.words import is_end

if TYPE_CHECKING:
    from transformer.translator import Translator

_QUOTED = re.compile("“(.+?)”")
_WAY = re.compile(r"(beam|sample)-(\d+)")


def in_words(change: Intervention, run: Translation | None = None) -> str:
    """A change as people read it."""
    words = str(change)
    if change.part == "tokens":
        words = _QUOTED.sub(lambda token: f"“{labels.piece(token[1])}”", words)
    if (
        isinstance(change, Hide)
        and run is not None
        and change.source_token < len(run.source_tokens)
    ):
        where = f"source token {labels.count(change.source_token)}"
        words = words.replace(
            where, f"{where}, “{labels.piece(run.source_tokens[change.source_token])}”,"
        )
    return words


def told_apart(first: Translation, second: Translation) -> list[str]:
    """A name for each of two runs: what differs first of model, text, changes, method, and
    output."""
    for names in (
        (first.model, second.model),
        (_quoted(first.source_text), _quoted(second.source_text)),
        tuple("changed" if run.interventions else "as it is" for run in (first, second)),
        (first.method, second.method),
        (_quoted(first.text), _quoted(second.text)),
    ):
        if names[0] != names[1]:
            return [f"A · {names[0]}", f"B · {names[1]}"]
    return ["A", "B"]


def _quoted(text: str) -> str:
    return f"“{textwrap.shorten(text, 60, placeholder=' …')}”"


def unchanged(run: Translation, model: Translator) -> Translation:
    """A changed run without its changes: decoded in the same way if that is known, else forced."""
    if run.steps and run.method != "forced":
        repeated = _decoded(run, model, run.interventions, capture=False)
        if repeated.target_ids == run.target_ids:
            return _decoded(run, model, ())
    return model.again(run)


def _decoded(
    run: Translation, model: Translator, changes: Sequence[Intervention], capture: bool = True
) -> Translation:
    from transformer.sampling import Sampling  # PyTorch is there, as the model is

    options: dict[str, Any] = {"beam_size": 1, "interventions": changes, "capture": capture}
    if way := _WAY.fullmatch(run.method):
        if way[1] == "beam":
            options["beam_size"] = int(way[2])
        else:
            options["sample"] = Sampling(seed=int(way[2]))
    if not is_end(run.target_tokens[-1]):
        options["max_length"] = len(run.target_tokens)
    if run.source_tokens:
        return model.translate(run.source_text, **options)
    return model.generate(run.prompt or "", **options)
