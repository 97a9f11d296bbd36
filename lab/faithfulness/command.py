"""`python -m lab faithfulness`: whether measures of source tokens find those that the model needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import numpy as np

from lab.faithfulness.measures import CROSS, MEASURES
from lab.measurement import Folder, Json, Pairs, Subject, measurement, one_thread, report
from lenses.measures.agreement import agreement
from lenses.measures.effect import Cut, Effects
from lenses.what_if.untrained import untrained_twin
from transformer import Capture
from transformer.commands.arguments import shown
from transformer.runs.bootstrap import Floats, compare, ratio
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator, load_translator
from transformer.runs.wording import InputError
from transformer.storage.description import FAITHFULNESS_FILE
from transformer.text.pairs import read_pairs
from transformer.trace.view import Array

DEPTHS = (1, 2, 3, 5)
"""Numbers of source tokens that are hidden, or left."""
_CHANCE = next(iter(MEASURES))


@measurement(FAITHFULNESS_FILE)
def faithfulness(
    model: Subject,
    data: Annotated[Pairs, "source<TAB>target lines; sources are read"],
    sentences: Annotated[int, "use the first N pairs of --data"] = 100,
    seed: Annotated[int, "seed of the untrained twin"] = 1,
    retrained: Annotated[Folder | None, "the same model, trained with another seed"] = None,
) -> Json:
    """Hides the source tokens that a measure names first, or all others; compares with random weights.

    "deleted" is the mean Δ log p of the step's token, in nats, with the first 1, 2, 3 or 5 tokens of the
    order hidden from the decoder; "kept" with all but those hidden. "effect" is the rank correlation of the
    measure with the exact effect of each token, mean over sentences; "untrained" that with the same measure
    of the same tokens in a model with random weights: high says that it owes little to what was learned;
    "retrained" that with another training: low says that it tells of this training, not of the sentence.
    """
    translator = model.translator
    others = {"untrained": untrained_twin(translator, seed)}
    if retrained is not None:
        others["retrained"] = load_translator(retrained)
        if translator.config != others["retrained"].config:
            raise InputError(f"{retrained} is not the same model with another seed: its sizes differ.")
    rows: dict[str, list[list[float]]] = {name: [] for name in MEASURES}
    texts = [pair.source for pair in read_pairs(data)]
    with one_thread():
        for run in runs_of(translator, texts, sentences):
            for name, row in _sentence(translator, run, others.values()).items():
                rows[name].append(row)
    tables, done = {name: np.array(each) for name, each in rows.items()}, len(rows[_CHANCE])
    return {
        "data": f"the model's own translations of {done} sentences of {shown(data)}",
        "sentences": done,
        "depths": list(DEPTHS),
        "measures": _summary(tables, tuple(others)),
    }


def runs_of(translator: Translator, texts: Sequence[str], most: int) -> Iterator[Translation]:
    """Translations of sentences with more tokens than are ever hidden; tells how many are done."""
    found = 0
    for text in texts:
        if found == most:
            return
        try:
            run = translator.translate(text, capture=Capture(residual=True))
        except InputError:
            continue
        if len(run.source_tokens) > max(DEPTHS) + 1:
            yield run
            found += 1
            if found % 20 == 0:
                report(f"{found} sentences")


def _sentence(
    translator: Translator, run: Translation, others: Iterable[Translator]
) -> dict[str, list[float]]:
    """By measure: Δ log p summed over steps at every depth, deleted and kept; correlations; steps."""
    made = Effects(translator, run)
    forced = [
        (other, other.force(run.source_text, run.target_ids, capture=Capture(residual=True)))
        for other in others
    ]
    values = {name: measure(translator, run) for name, measure in MEASURES.items()}
    exact = values["effect"]
    found = {}
    for name, of_tokens in values.items():
        own = [*_curve(made, of_tokens, kept=False), *_curve(made, of_tokens, kept=True)]
        again = [MEASURES[name](other, same) for other, same in forced]
        agreed = [agreement(of_tokens, each, draws=0).value for each in (exact, *again)]
        found[name] = [*own, *(0.0 if each != each else each for each in agreed), len(run.steps)]
    return found


def _curve(made: Effects, values: Array, kept: bool) -> list[float]:
    """Σ over steps of Δ log p with the first tokens of each step's order hidden, or with all others."""
    orders = np.argsort(-values, axis=1, kind="stable")
    cuts = []
    for depth in DEPTHS:
        for order in orders:
            cuts.append((Cut(CROSS, tuple(map(int, order[depth:] if kept else order[:depth]))),))
    changes = made.of(cuts).numpy().reshape(len(DEPTHS), len(orders), -1)
    steps = np.arange(len(orders))
    return [float(each[steps, steps].sum()) for each in changes]


def _summary(tables: dict[str, Floats], others: Sequence[str] = ("untrained",)) -> Json:
    count = len(DEPTHS)
    columns = {
        "deleted": [[at, -1] for at in range(count)],
        "kept": [[count + at, -1] for at in range(count)],
    }
    found: Json = {name: {} for name in tables}
    for kind, places in columns.items():
        compared = [
            compare({name: table[:, place] for name, table in tables.items()}, ratio, _CHANCE)
            for place in places
        ]
        for name in tables:
            found[name][kind] = [each[name] for each in compared]
    for at, kind in enumerate(("effect", *others), 2 * count):
        ones = {name: np.stack([table[:, at], np.ones(len(table))], 1) for name, table in tables.items()}
        for name, cell in compare(ones, ratio).items():
            found[name][kind] = cell["value"]
    return found
