"""`python -m lab blind`: how many sentences of the judged lists the bundled models translate acceptably."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Annotated

from lab.measurement import Folder, Json, measurement
from lab.study import Study, chart
from transformer.text.pairs import DataError

LISTS = {
    "judged.tsv": ("en-de, an older one", "en-de"),
    "judged-en-pt.tsv": ("firefox-en-pt", "en-pt"),
    "pasted-en-pt.tsv": ("firefox-en-pt", "en-pt"),
}
"""The files, and the models whose translations stand in their third and fifth column."""
TITLES = {
    "judged.tsv": "English to German",
    "judged-en-pt.tsv": "English to Portuguese",
    "pasted-en-pt.tsv": "texts as people paste them, English to Portuguese",
}
_TWICE = 1.96
"""Standard deviations of a 95 % interval."""


def told(found: Json) -> Study:
    """How many translations are acceptable, by list and by kind of sentence."""
    lists = found["lists"]
    totals = {
        (name, model): _share(*map(sum, zip(*kinds.values(), strict=True)))
        for name, models in lists.items()
        for model, kinds in models.items()
    }
    german, portuguese, pasted = (totals[name, LISTS[name][1]][0] for name in LISTS)
    return Study(
        topic="Translation",
        question="How many everyday sentences do the bundled models translate acceptably?",
        finding=f"Of the listed sentences en-pt translates {portuguese:.0f} % acceptably, "
        f"en-de {german:.0f} %; of texts as people paste them, en-pt translates {pasted:.0f} %.",
        parts=[
            "Acceptable means: the meaning is kept, with small slips at most. A common noun or verb left in "
            "English, a wrong number, a lost part of the sentence, or a different meaning is not acceptable. "
            "The sentences were written before they were translated. Pasted texts are chosen to be hard: "
            "many have characters that the vocabulary lacks. Each kind has few sentences, whose number "
            "stands beside it.",
            chart(
                "dots",
                "Acceptable translations, %",
                ("list", "model", "acceptable, %", "low", "high"),
                [(TITLES[name], model, *share) for (name, model), share in totals.items()],
            ),
            *(
                chart(
                    "bars",
                    f"Acceptable translations by kind of sentence, {TITLES[name]}",
                    ("model", "kind", "acceptable, %"),
                    [
                        (model, f"{kind} ({counts[1]})", _share(*counts)[0])
                        for model, kinds in models.items()
                        for kind, counts in kinds.items()
                    ],
                )
                for name, models in lists.items()
            ),
        ],
        method="One judge for each list, who is no native speaker of Portuguese. For German, the two "
        "translations of a sentence were shown in a random order; for Portuguese, the judge knew which model "
        "wrote what. Read the shares as a rough measure. Wilson intervals of 95 %.",
        sources="tests/blind/README.md.",
    )


def _share(good: int, count: int) -> tuple[float, float, float]:
    """A share in per cent, with its Wilson interval."""
    share, square = good / count, _TWICE**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    reach = _TWICE * math.sqrt(share * (1 - share) / count + square / (4 * count**2)) / (1 + square / count)
    return 100 * share, 100 * (middle - reach), 100 * (middle + reach)


@measurement("assets/blind.json", studies={"blind-lists": told})
def blind(lists: Annotated[Folder, "folder of the judged lists"] = Path("tests/blind")) -> Json:
    """Counts the acceptable translations of the judged lists."""
    return {"lists": {name: _counted(lists / name, models) for name, models in LISTS.items()}}


def _counted(path: Path, models: tuple[str, str]) -> Json:
    """Acceptable translations and sentences of each kind, by model."""
    found: dict[str, dict[str, Counter[str]]] = {model: {} for model in models}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        try:
            kind, _, _, first, _, second = line.split("\t")
        except ValueError as error:
            raise DataError(f"{path}, line {number}: six columns are expected.") from error
        for model, verdict in zip(models, (first, second), strict=True):
            found[model].setdefault(kind, Counter())[verdict] += 1
    return {
        model: {kind: [each["yes"], each.total()] for kind, each in kinds.items()}
        for model, kinds in found.items()
    }
