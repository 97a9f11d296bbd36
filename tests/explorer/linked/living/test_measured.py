from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import app_pages
import numpy as np
import pytest
from living_pages import Opened

from explorer import PageError, page
from transformer import Translator, load_translator
from transformer import interventions as do

MODEL = Path(__file__).parents[4] / "assets/models/en-de"
TEXT = "The house is old."


@pytest.fixture(scope="module")
def en_de() -> Translator:
    return load_translator(MODEL)


@pytest.fixture(scope="module")
def made(en_de: Translator) -> Opened:
    return Opened(page(en_de.translate(TEXT), en_de, directory=MODEL, measures=("carried", "effect")))


@pytest.mark.parametrize("measure", ["carried", "effect"])
def test_measured_maps_are_those_that_the_app_sends(made: Opened, measure: str):
    at = app_pages.run(model="en-de", text=TEXT, measure=measure)
    sent = app_pages.feeds(at)
    for kind, opens in made.run["place"]["heads"].items():
        told = sent[kind]
        assert told["head"] == opens
        figure = json.loads(told.pop("figure"))
        cells = figure["data"][0]
        levels, numbers = (app_pages.array(cells[name]) for name in ("z", "customdata"))
        found = made.run["kinds"][kind]["measures"][measure]
        number = found["heads"].index(opens)
        kept = made.measures[kind][measure]
        assert (kept[0][number] == levels).all()
        assert (kept[2][number] == numbers[..., 1]).all()
        assert np.abs(thousandths(kept)[number] - 1000 * numbers[..., 0].astype(float)).max() <= 0.5001
        own: dict[str, Any] = {**made.run["kinds"][kind]["shared"], **found["own"][number]}
        cells |= {"z": None, "customdata": None}
        assert json.loads(own.pop("figure")) == figure
        for each in {"caption", "badge", "sentences", "notes", "alt", "legend", "quantity", "limit"}:
            assert own[each] == told[each], each


def thousandths(kept: list[np.ndarray]) -> np.ndarray:
    levels, beside = (each.astype(int) for each in kept[:2])
    return (1000 * np.maximum(levels - 1, 0) / 254 + 0.5).astype(int) + beside - 128


def test_every_head_is_measured_by_what_it_carried_and_the_first_ones_by_effects(made: Opened):
    for kind in made.run["kinds"].values():
        assert len(kind["measures"]["carried"]["heads"]) == kind["size"][0] * kind["size"][1]
        assert len(kind["measures"]["effect"]["heads"]) == 1


def test_what_cannot_be_measured_is_said(en_de: Translator, translator: Translator):
    run = translator.translate("one", max_length=3)
    changed = translator.translate("one", max_length=3, interventions=[do.ablate("cross", 0, 0)])
    for given, told in (
        ((run, None, ("carried",)), "with the model"),
        ((run, translator, ("mass",)), "no measure 'mass'"),
        ((changed, translator, ("carried",)), "without changes"),
    ):
        with pytest.raises(PageError, match=told):
            page(given[0], given[1], measures=given[2])
    made = page(run, translator, measures=("carried",), beside=changed)
    assert "measures" in Opened(made).run["kinds"]["cross"]
    assert "measures" not in Opened(made, "-2").run["kinds"]["cross"]
