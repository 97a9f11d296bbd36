"""What a page knows of a model beyond one of its runs, and the address at which the app shows a run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from explorer.lenses.heads.survey import surveyed
from explorer.lenses.words.alignment import Aligner
from explorer.lenses.words.languages import languages_in_words, languages_of
from explorer.linked.living.measured import Measure, Measuring, Why
from explorer.linked.view import Gloss
from explorer.linked.view.strips import Example, read_examples
from transformer.config import Head
from transformer.interventions import write_text
from transformer.run import Translation
from transformer.storage.description import EXAMPLES_FILE
from transformer.storage.files import CheckpointError

if TYPE_CHECKING:
    from transformer.translator import Translator


Roles = Mapping[str, Sequence[Sequence[str]]]


@dataclass(frozen=True)
class Known:
    """What is known of a model beyond one of its runs."""

    sha256: str | None = None  # of its weights
    opens: Mapping[str, Head] = field(default_factory=dict)  # the head of each kind that opens first, from 0
    aligner: Aligner | None = None  # where glosses come from
    roles: Roles = field(default_factory=dict)  # of every head, by kind and layer
    # source words under target words of one run, as in `strips_feed`; None for those of the aligner
    glosses: Mapping[int, Gloss] | None = None
    app: str = ""  # where the app runs, if that is known
    query: Mapping[str, str] | None = None  # as in `address`
    measure: Measure | None = None  # what puts a measure in the place of weights
    why: Why | None = None  # what says why a token was written
    languages: str = ""  # of the model, such as "English → German"
    examples: Sequence[Example] = ()  # whose sentences open where their claims are seen

    def example(self, run: Translation) -> Example | None:
        """The example with the sentence of a run that the model wrote, unchanged."""
        if run.interventions or run.method == "forced":
            return None
        return next((each for each in self.examples if each.text == run.source_text), None)

    @classmethod
    def of(cls, model: Translator | None, directory: str | Path | None) -> Known:
        """What a model and its directory say."""
        sha256, heads = None, {}
        if model is not None:
            from transformer.exports.npz import model_digest  # PyTorch is there, as the model is

            sha256, heads = model_digest(model.model), model.heads or {}
        opens = {kind: (int(at[0]), int(at[1])) for kind, at in heads.get("default", {}).items()}
        best = heads.get("aligner")
        aligner = best and Aligner(tuple((layer, head) for layer, head in best["heads"]), best["rows"])
        roles: Roles = {} if directory is None else surveyed(Path(directory))
        found = cls(sha256, opens, aligner, roles)
        if directory is not None:
            languages = languages_in_words(languages_of(Path(directory)) or ())
            found = replace(found, languages=languages, examples=_examples(Path(directory)))
        if model is None:
            return found
        measuring = Measuring(model)
        return replace(found, measure=measuring.map, why=measuring.why)


def _examples(directory: Path) -> Sequence[Example]:
    """The examples beside a model; none if the file is missing or damaged."""
    with suppress(CheckpointError):
        return read_examples(directory / EXAMPLES_FILE)
    return ()


LONGEST = 4_000
"""Most characters of an address: proxies cut longer ones."""


def address(
    run: Translation,
    app: str = "",  # where the app runs; empty if only the reader knows
    query: Mapping[str, str] | None = None,  # parameters that open the run; by default those that it says
) -> dict[str, Any] | None:
    """Page and parameters that open a run, a sample as a given translation; None if they are too long."""
    if query is None:
        query = {"model": run.model, **_texts(run)}
        if run.interventions:
            query = {**query, "changes": write_text(run.interventions)}
    if len(urlencode(query, errors="replace")) > LONGEST:
        return None
    return {"at": app, "page": "language_model" * (run.prompt is not None), "query": query}


def _texts(run: Translation) -> dict[str, str]:
    decoded = run.method == "greedy" or run.method.startswith("beam-")
    if run.prompt is not None:
        return {"prompt": run.prompt, "decode": run.method} if decoded else {"prompt": run.text}
    return {"text": run.source_text, **({"decode": run.method} if decoded else {"target": run.text})}
