"""The address at which the app shows a run again, but for where that app runs, the cursor and the heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from transformer.interventions import write_text
from transformer.runs.language.generation import Generation
from transformer.runs.translation import Translation

LONGEST = 4_000
"""Most characters of an address: proxies cut longer ones."""


def address(
    run: Translation,
    app: str = "",  # where the app runs; empty if only the reader knows
    query: Mapping[str, str] | None = None,  # parameters that open the run; by default those that it says
) -> dict[str, Any] | None:
    """Page and parameters; None if the run's texts are too long for an address.

    A sample is opened as a given translation, since a run does not hold how its tokens were drawn.
    """
    if query is None:
        query = {"model": run.model, **_texts(run)}
        if run.interventions:
            query = {**query, "changes": write_text(run.interventions)}
    if len(urlencode(query, errors="replace")) > LONGEST:
        return None
    return {"at": app, "page": "language_model" * isinstance(run, Generation), "query": query}


def _texts(run: Translation) -> dict[str, str]:
    decoded = run.method == "greedy" or run.method.startswith("beam-")
    if isinstance(run, Generation):
        return {"prompt": run.prompt, "decode": run.method} if decoded else {"prompt": run.text}
    return {"text": run.source_text, **({"decode": run.method} if decoded else {"target": run.text})}
