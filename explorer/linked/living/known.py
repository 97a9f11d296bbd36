"""What a page knows of a model beyond one of its runs, and what it measures with it."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from explorer.figures import to_json
from explorer.figures.base import labels
from explorer.figures.base.captions import MEASURES, badge, quote
from explorer.lenses.heads.survey import surveyed
from explorer.lenses.words.alignment import Aligner
from explorer.lenses.words.languages import languages_in_words
from explorer.lenses.words.reading import Reading, ReadView, read_view
from explorer.linked.living import packed
from explorer.linked.view.strips import Example, read_examples
from explorer.linked.view.wire import Gloss, MapFeed
from transformer.config import Head, RecurrentConfig
from transformer.run import Translation
from transformer.storage.description import EXAMPLES_FILE, read_header
from transformer.storage.files import CheckpointError
from transformer.view import HeadMap

if TYPE_CHECKING:
    from transformer.translator import Translator

Roles = Mapping[str, Sequence[Sequence[str]]]


@dataclass(frozen=True)
class Known:
    """What is known of a model beyond one of its runs."""

    sha256: str | None = None  # of its weights
    opens: Mapping[str, Head] = field(
        default_factory=dict
    )  # the head of each kind that opens first, from 0
    aligner: Aligner | None = None  # where glosses come from
    roles: Roles = field(default_factory=dict)  # of every head, by kind and layer
    # source words under target words of one run, as in `strips_feed`; None for those of the aligner
    glosses: Mapping[int, Gloss] | None = None
    measure: Measure | None = None  # what puts a measure in the place of weights
    why: Why | None = None  # what says why a token was written
    languages: str = ""  # of the model, such as "English → German"
    examples: Sequence[Example] = ()  # whose sentences open where their claims are seen

    def example(self, run: Translation) -> Example | None:
        """The example with the sentence of a run that the model wrote, unchanged."""
        if run.interventions or run.method == "forced":
            return None
        return next((example for example in self.examples if example.text == run.source_text), None)

    @classmethod
    def of(cls, model: Translator | None, directory: str | Path | None) -> Known:
        """What a model and its directory say."""
        sha256 = None
        heads = {}
        if model is not None:
            from transformer.exports.npz import model_digest  # PyTorch is there, as the model is

            sha256 = model_digest(model.model)
            heads = model.heads or {}
        opens = {kind: (int(at[0]), int(at[1])) for kind, at in heads.get("default", {}).items()}
        best = heads.get("aligner")
        aligner = best and Aligner(
            tuple((layer, head) for layer, head in best["heads"]), best["rows"]
        )
        roles: Roles = {} if directory is None else surveyed(Path(directory))
        known = cls(sha256, opens, aligner, roles)
        if directory is not None:
            languages = languages_in_words(read_header(Path(directory)).language)
            known = replace(known, languages=languages)
            with suppress(CheckpointError):
                known = replace(known, examples=read_examples(Path(directory) / EXAMPLES_FILE))
        if model is None:
            return known
        measuring = Measuring(model)
        return replace(known, measure=measuring.map, why=measuring.why)


Measure = Callable[[Translation, str, HeadMap], HeadMap]
"""Gets a run, the name of a measure and a whole map; returns the map with its numbers, and their
audit."""
Why = Callable[[Translation, int], str]
"""Gets a run and a step, from 0; returns HTML that says why its token was written."""
ASKED = MEASURES[1:]
MOST = 128
WRITERS = 14
"""Measures beside the weight, most tokens a side, writers in a table of their own row."""
_SAYS = (
    "The difference of logits is the sum of what wrote the decoder's last stream, on the direct "
    "path, with the σ of every norm held fixed; a part read in cross-attention belongs to a "
    "source token. A part is no effect."
)


class Measuring:
    """Measures runs of a translator; a second pass over each run has what that needs."""

    def __init__(self, model: Translator) -> None:
        self.model = model
        self.run: Translation | None = None
        self.retraced: Translation | None = None

    def _retraced(self, run: Translation) -> Translation:
        """The run with all that a measure needs, made once."""
        from transformer.translator import retrace  # PyTorch is there, as the model is

        if self.run is not run or self.retraced is None:
            self.retraced = retrace(self.model, run)
            self.run = run
        return self.retraced

    def map(self, run: Translation, measure: str, view: HeadMap) -> HeadMap:
        """A ``Measure``."""
        from explorer.lenses.measures.effect import effect_in, effect_map
        from explorer.lenses.measures.stream import carried, carried_map

        retraced = self._retraced(run)
        at = (view.kind, view.layer, view.head)
        if measure == "carried":
            return carried_map(view, carried(self.model.model, retraced, *at))
        return effect_map(view, effect_in(self.model, retraced, *at, view.window))

    def why(self, run: Translation, step: int) -> str:
        """A ``Why``: the difference of two logits, in words and as tables."""
        from explorer.lenses.measures.attribution import alti, attribution, by_key
        from explorer.lenses.measures.effect import on_difference

        retraced = self._retraced(run)
        model = self.model.model
        written = retraced.steps[step]
        rival = next(
            (
                alternative
                for alternative in written.alternatives
                if alternative.token_id != written.token_id
            ),
            None,
        )
        pair = written.token_id, None if rival is None else rival.token_id
        parts = attribution(model, retraced, step, *pair)
        columns = {"part read there": by_key(model, retraced, step, *pair)}
        if rival is not None:
            columns["difference without it"] = on_difference(
                self.model, retraced, step, rival.token_id
            )
        shares = alti(model, retraced)
        columns["share (ALTI+)"] = shares.source[step]
        report = retraced.audit().joined(parts.audit).joined(shares.audit)
        sources = labels.names(run.source_tokens)
        most = sources[int(np.argmax(np.abs(columns["part read there"])))]
        logit = f"“{quote(written.token)}”" + (
            "" if rival is None else f" over “{quote(rival.token)}”"
        )
        says = (
            f"{logit} by {parts.total:.2f}; the largest part through cross-attention was read at "
            f"“{most}”."
        )
        by_token = zip(sources, *(column.tolist() for column in columns.values()), strict=True)
        return (
            '<details class="living-why" open><summary>'
            f"Why “{html.escape(quote(written.token))}”, step {labels.count(step)}?</summary>\n"
            f"<p>{html.escape(says)} {_SAYS}</p>\n"
            f"{_table(('source token', *columns), by_token)}\n"
            f"{_table(('what wrote the last stream', 'nats'), parts.largest(WRITERS))}\n"
            f"<p>{html.escape(str(badge(report, derived=True)['text']))}</p></details>"
        )


def _table(names: Iterable[str], rows: Iterable[tuple[str, *tuple[float, ...]]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr><td>{html.escape(name)}</td>{''.join(map(_cell, values))}</tr>"
        for name, *values in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def measured(
    views: Mapping[Head, HeadMap],  # the heads of a kind that are measured
    measure: Callable[[HeadMap], HeadMap],
    feed: Callable[[ReadView], MapFeed],  # the feed of a map
    shared: Mapping[str, object],  # what feeds of weights share
) -> tuple[dict[str, object], list[packed.Bytes]]:
    """What feeds of these heads say, and their cells: two bytes of a share, a float32 of the
    measure."""
    heads: list[Head] = []
    feeds = []
    cells = []
    numbers = []
    for at, view in views.items():
        lens = measure(view)
        if lens.measured is None:  # a map of too many cells
            continue
        page_feed = feed(read_view(lens, Reading()))
        figure = json.loads(page_feed["figure"])
        figure["data"][0] |= {"z": None, "customdata": None}
        values = {**page_feed, "figure": to_json(figure)}
        heads.append(at)
        feeds.append(
            {
                name: value
                for name, value in values.items()
                if value != shared[name] and name != "acts"
            }
        )
        cells.append((lens.weights, lens.mask))
        numbers.append(np.nan_to_num(lens.measured).astype("<f4"))
    if not heads:
        return {}, []
    levels, beside = packed.cells(*(np.array(arrays) for arrays in zip(*cells, strict=True)))
    return {"heads": heads, "own": feeds}, [levels, beside, np.array(numbers).view(np.uint8)]


def why_not(run: Translation, measures: Sequence[str], able: bool) -> str | None:
    """Why a page cannot have measures, in one sentence; None if it can."""
    if unknown := [measure for measure in measures if measure not in ASKED]:
        return f"There is no measure {unknown[0]!r}; there are {', '.join(ASKED)}."
    if not able or isinstance(run.config, RecurrentConfig):
        return "What keys carried and did is measured with the model, in Transformers."
    if run.interventions:
        return "What keys carried and did is measured in a run without changes."
    if max(len(run.source_tokens), len(run.target_tokens)) > MOST:
        return f"Measures are in pages of runs of at most {MOST} tokens a side."
    return None


def _cell(value: float) -> str:
    return f"<td>{labels.number(value, '+.3f')}</td>"
