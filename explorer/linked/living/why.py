"""Why a token of a page was written: the difference of two logits, in words and as tables."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from explorer.figures.base import labels
from explorer.figures.base.captions import badge, quote
from transformer.run import Translation

Why = Callable[[Translation, int], str]
"""Gets a run and a step, from 0; returns HTML that says why its token was written."""
_MOST = 14
"""Writers in the table; the others are one row."""
_SAYS = (
    "The difference of logits is the sum of what wrote the decoder's last stream, on the direct path, with "
    "the σ of every norm held fixed; a part read in cross-attention belongs to a source token. A part is no "
    "effect."
)


class Explaining:
    """Explains tokens of runs of a translator; a second pass over each run has what that needs."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, run: Translation, step: int) -> str:
        from explorer.lenses.measures.attribution import (
            alti,  # PyTorch is there, as the model is
            attribution,
            by_source,
        )
        from explorer.lenses.measures.effect import on_difference
        from transformer.translator import retrace

        again, model = retrace(self.model, run), self.model.model
        written = again.steps[step]
        rival = next((each for each in written.alternatives if each.token_id != written.token_id), None)
        pair = written.token_id, None if rival is None else rival.token_id
        found = attribution(model, again, step, *pair)
        order = np.argsort(-np.abs(found.values))
        rows = [(str(found.writers[at]), float(found.values[at])) for at in order[:_MOST]]
        if len(order) > _MOST:
            rows.append((f"{len(order) - _MOST} others", float(found.values[order[_MOST:]].sum())))
        columns = [by_source(model, again, step, *pair), alti(model, again).source[step]]
        names = ["source token", "part read there", "share (ALTI+)"]
        if rival is not None:
            columns.insert(1, on_difference(self.model, again, step, rival.token_id))
            names.insert(2, "difference without it")
        sources = labels.names(run.source_tokens)
        most = sources[int(np.argmax(np.abs(columns[0])))]
        logit = f"“{quote(written.token)}”" + ("" if rival is None else f" over “{quote(rival.token)}”")
        says = f"{logit} by {found.total:.2f}; the largest part through cross-attention was read at “{most}”."
        by_token = [(name, *map(float, values)) for name, *values in zip(sources, *columns, strict=True)]
        return (
            f'<details class="living-why" open><summary>Why “{html.escape(quote(written.token))}”, step '
            f"{labels.count(step)}?</summary>\n<p>{html.escape(says)} {_SAYS}</p>\n"
            f"{_table(names, by_token)}\n{_table(('what wrote the last stream', 'nats'), rows)}\n"
            f"<p>{html.escape(str(badge(again.audit(), derived=True)['text']))}</p></details>"
        )


def _table(names: Iterable[str], rows: Iterable[tuple[str, *tuple[float, ...]]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr><td>{html.escape(name)}</td>{''.join(f'<td>{value:+.3f}</td>' for value in values)}</tr>"
        for name, *values in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
