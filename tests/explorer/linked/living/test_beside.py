from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from living_pages import Opened
from random_models import random_language_model

from explorer import page, show
from explorer.linked.living.beside import in_words, told_apart, unchanged
from transformer import Sampling, Translation, Translator
from transformer import interventions as do

OFF, TEXT = do.ablate("cross", 1, 0), "one two three"


def test_two_runs_of_a_page_are_those_of_a_page_of_each(translator: Translator):
    one, other = translator.translate(TEXT, max_length=7), translator.translate("four", max_length=4)
    made = page(one, beside=other)
    steps = max(len(run.target_tokens) for run in (one, other))
    for run, number in ((one, ""), (other, "-2")):
        found, alone = Opened(made, number), Opened(page(run))
        pair = {"view": f"home{number}", "paired": True, "steps": steps}
        assert found.run == {**alone.run, "spec": {**alone.run["spec"], **pair}}
        for kind, cells in alone.cells.items():
            assert all((a == b).all() for a, b in zip(found.cells[kind], cells, strict=True))
    assert ">A · “one two three”<" in made
    assert show(one, beside=other).page == made


MADE: dict[str, Callable[..., Translation]] = {
    "greedy": lambda model, changes: model.translate(TEXT, max_length=9, interventions=changes),
    "beam": lambda model, changes: model.translate(TEXT, beam_size=3, interventions=changes),
    "sampled": lambda model, changes: model.translate(TEXT, sample=Sampling(seed=3), interventions=changes),
    "forced": lambda model, changes: model.force(TEXT, "one two", interventions=changes),
}


@pytest.mark.parametrize("way", MADE)
def test_a_changed_run_has_the_run_without_its_changes_beside_it(translator: Translator, way: str):
    changed, plain = MADE[way](translator, [OFF]), MADE[way](translator, ())
    found = unchanged(changed, translator)
    assert (found.target_ids, found.method, found.interventions) == (plain.target_ids, plain.method, ())
    made = page(changed, translator)
    assert Opened(made).run["said"]["changes"] == [f"Changed: {OFF}."]
    weights = np.rint(1000 * plain.weights("cross", 1, 1).astype(float))
    assert (Opened(made, "-2").weights("cross")[1, 1] == weights).all()
    assert 'id="run-2"' not in page(changed)


def test_a_run_that_its_own_words_do_not_make_again_is_read_by_the_model_as_it_is(translator: Translator):
    drawn = translator.translate(TEXT, sample=Sampling(seed=3, temperature=3.0), interventions=[OFF])
    found = unchanged(drawn, translator)
    assert (found.method, found.target_ids) == ("forced", drawn.target_ids)


def test_a_text_without_a_source_has_it_too(translator: Translator):
    model = random_language_model(vocab_size=translator.tokenizer.vocab_size, trained_length=30)
    writer = Translator(model, translator.tokenizer, name="writer")
    off = do.ablate("decoder", 0, 0)
    found = unchanged(writer.generate("one two", max_length=9, interventions=[off]), writer)
    assert found.target_ids == writer.generate("one two", max_length=9).target_ids


def test_runs_are_told_apart_by_what_differs(translator: Translator):
    one = translator.translate("one", max_length=3)
    changed = translator.translate("one", max_length=3, interventions=[OFF])
    assert told_apart(one, one) == ["A", "B"]
    assert told_apart(changed, one) == ["A · changed", "B · as it is"]
    assert told_apart(one, translator.force("one", "two")) == ["A · greedy", "B · forced"]
    other = translator.translate("two " * 40, max_length=3)
    assert told_apart(changed, other) == ["A · “one”", f"B · “{'two ' * 14}…”"]
    forced = [translator.force("one", text) for text in ("two", "three")]
    assert told_apart(*forced) == ["A · “two”", "B · “three”"]


def test_a_change_names_the_word_behind_a_position(translator: Translator):
    run = translator.translate(TEXT, max_length=3)
    token = run.source_tokens[1].removeprefix("▁")
    assert f"source token 2, “{token}”, is hidden" in in_words(do.hide(1), run)
    assert in_words(do.hide(1)) == str(do.hide(1))
