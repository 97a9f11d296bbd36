"""`python -m lab faithfulness`: whether measures of source tokens find those that the model needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import numpy as np

from lab.faithfulness.measures import CROSS, MEASURES
from lab.measurement import Folder, Json, Pairs, Subject, measurement, one_thread, report
from lab.study import Chart, Study, chart, curves, interval
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


def told(found: Json) -> Study:
    """What the comparison says of weights, and of the measures made to replace them."""
    measures, depths = found["measures"], found["depths"]
    first = {name: _lost(each["deleted"][0]["value"]) for name, each in measures.items()}
    value, low, high = first[_WEIGHTS]
    others = sorted(_INSTEAD, key=lambda name: -first[name][0])
    better = [name for name in others if first[name][1] > high]
    drawn = {name: each for name, each in measures.items() if name != _CHANCE}
    same = [name for name, each in drawn.items() if each["untrained"]["value"] > _UNLEARNED]
    return Study(
        topic="Explanation",
        question=f"Do attention weights name the source tokens that “{found['model']}” needs?",
        finding=f"{_verdict(first[_WEIGHTS], first[_CHANCE])} by the mean over all heads: hiding the one "
        f"token of largest mean weight costs {value:.2f} nats, a random one {first[_CHANCE][0]:.2f}; that of "
        f"largest weight in the last layer costs {first[_LAST][0]:.2f}, that of largest effect "
        f"{first['effect'][0]:.2f}.",
        parts=[
            "At every step, each measure orders the source tokens. **Hidden**: the first of them are hidden "
            "from the whole decoder, and log p of the step's token falls; the more it falls, the better the "
            "order. **Kept**: all but the first are hidden; the less it falls, the better. The order by "
            "exact effect of each token alone costs a run for each. It knows the answer: it is chosen by the "
            "same log p, so the tokens that it keeps may cost less than nothing. For several tokens it need "
            "not be the best.",
            f"Of the measures made to replace weights, {', '.join(better) or 'none'} surely "
            f"{'cost' if len(better) > 1 else 'costs'} more than the mean weight's {value:.2f} "
            f"({low:.2f} to {high:.2f}): "
            f"{', '.join(f'{name} {first[name][0]:.2f}' for name in others)}."
            + (_ATTRACTED if first[_WEIGHTS][2] < first[_CHANCE][1] else ""),
            _dots("deleted", "the first token hidden", measures),
            _dots("kept", "all but the first token hidden", measures),
            *(
                curves(
                    f"Nats that a token loses with the first tokens of an order {what}",
                    ("order by", f"tokens {what}", "nats lost", "low", "high"),
                    {
                        name: [
                            (depth, *_lost(cell["value"]))
                            for depth, cell in zip(depths, measures[name][kind], strict=True)
                        ]
                        for name in _DRAWN
                    },
                )
                for kind, what in (("deleted", "hidden"), ("kept", "kept"))
            ),
            "An order is worth more if it agrees with the exact effect, and less if a model with random "
            "weights orders the same tokens alike: then it owes little to what was learned. "
            + (
                f"That holds for {' and '.join(same)}."
                if same
                else f"No measure reaches a rank correlation of {_UNLEARNED} there."
            ),
            chart(
                "dots",
                "Rank correlation of each order with that by exact effect",
                ("with", "order by", "rank correlation", "low", "high"),
                [
                    ("exact effect", name, *interval(each["effect"]))
                    for name, each in measures.items()
                    if name != "effect"
                ],
            ),
            chart(
                "dots",
                "Rank correlation of each order with itself in another model",
                ("with", "order by", "rank correlation", "low", "high"),
                [
                    (label, name, *interval(each[key]))
                    for key, label in _CONTROLS.items()
                    for name, each in drawn.items()
                    if key in each
                ],
            ),
        ],
        method=f"{found['data'].capitalize()}; cross-attention of the whole decoder. 95 % intervals of the "
        "bootstrap over sentences. “One random head” is drawn for each sentence.",
        sources="Jain & Wallace 2019; Wiegreffe & Pinter 2019; Ferrando et al. 2022 (ALTI+).",
    )


_WEIGHTS, _LAST, _INSTEAD = (
    "weights, all heads",
    "weights, last layer",
    ("carried", "ALTI+", "gradient × input", "rollout"),
)
_DRAWN = ("effect", "ALTI+", _WEIGHTS, "rollout", _CHANCE)
_CONTROLS = {"untrained": "random weights", "retrained": "a second training"}
_ATTRACTED = (
    " An order can fail with one token and succeed with two, as in the curves: its first is then often the "
    "same, one that draws weight whatever is predicted, such as `</s>`."
)
_UNLEARNED = 0.5
"""Rank correlation with random weights from which a picture owes little to what was learned."""


def _verdict(own: Sequence[float], chance: Sequence[float]) -> str:
    """Whether an order beats another, by their intervals."""
    if own[1] > chance[2]:
        return "Better than chance"
    return "Worse than chance" if own[2] < chance[1] else "No better than chance"


def _lost(cell: Json) -> list[float]:
    """Nats lost, with the ends of the interval in their order."""
    value, low, high = interval(cell, -1.0)
    return [value, high, low]


def _dots(kind: str, what: str, measures: Json) -> Chart:
    cells = {name: _lost(each[kind][0]["value"]) for name, each in measures.items()}
    return chart(
        "dots",
        f"Nats that a token loses with {what}",
        ("hidden", "order by", "nats lost", "low", "high"),
        [(what, name, *cell) for name, cell in cells.items()],
    )


@measurement(FAITHFULNESS_FILE, studies={"faithfulness": told})
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
