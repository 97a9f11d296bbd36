"""Why a token of a page was written: its way back as a picture and in words, made with the model."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from figures.base.captions import badge, quote
from figures.base.labels import count
from figures.pages.way_back import way_svg
from linked.view import ways
from transformer.runs.translation import Translation

Why = Callable[[Translation, int], str]
"""Gets a run and a step, from 0; returns HTML that says why its token was written."""
_TOLD = (
    "The difference of logits is the sum of what wrote the decoder's last stream; a head is the sum of what "
    "it read at each position, and so on back to the source words. Attention weights and the σ of every norm "
    "are held fixed; feed-forward networks and biases are ends. A part is no effect."
)


class Explaining:
    """Explains tokens of runs of a translator; a second pass over each run has what that needs."""

    def __init__(self, model: Any) -> None:
        self.model = model
        # the run asked about last, and its second
        self._traced: tuple[Translation, Translation] | None = None

    def __call__(self, run: Translation, step: int) -> str:
        from lenses.again.way_back import audit_way_back  # PyTorch is there, as the model is
        from lenses.measures.way_back import WayGraph, way_back

        again, model = self._again(run), self.model.model
        written = again.steps[step]
        rival = next((each for each in written.alternatives if each.token_id != written.token_id), None)
        pair = written.token_id, None if rival is None else rival.token_id
        found = way_back(model, again, step, *pair)
        audit = again.audit().joined(found.audit).joined(audit_way_back(model, again, step, pair, found))
        logit = f"z(“{quote(written.token)}”)"
        logit += "" if rival is None else f" − z(“{quote(rival.token)}”)"
        picture = WayGraph(found)
        places, lines = ways.places(run, picture, logit), ways.lines(picture)
        rows = "".join(
            f"<tr><td>{html.escape(places[each.end].name)}</td><td>{html.escape(places[each.start].name)}</td>"
            f"<td>{each.value:+.3f}</td></tr>"
            for each in lines
        )
        return (
            f'<details class="living-why" open><summary>Why “{html.escape(quote(written.token))}”, step '
            f"{count(step)}?</summary>\n<p>{html.escape(ways.strongest(run, found))} {_TOLD}</p>\n"
            f"{way_svg(ways.TITLES, places, lines)}\n<p>{html.escape(str(badge(audit)['text']))}</p>\n"
            f"<details><summary>The same as a table, in nats</summary><table><tr><th>from</th><th>to</th>"
            f"<th>part</th></tr>{rows}</table></details></details>"
        )

    def _again(self, run: Translation) -> Translation:
        from transformer.runs.retrace import retrace

        if self._traced is None or self._traced[0] is not run:
            self._traced = run, retrace(self.model, run)
        return self._traced[1]
