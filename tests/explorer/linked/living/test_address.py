from __future__ import annotations

from random_models import random_language_model

from explorer.app.address.parameters import parse
from explorer.app.address.state import State
from explorer.linked.living.known import address
from transformer import Sampling, Translation, Translator
from transformer import interventions as do


def state(run: Translation) -> State:
    """What the app reads in the address of a run."""
    found = address(run)
    assert found is not None
    told, wrong = parse({name: [value] for name, value in found["query"].items()})
    assert not wrong
    assert found["at"] == ""
    return told


def test_the_app_reads_the_run_in_its_address(translator: Translator):
    named, text = translator.name, "one & two #3"
    greedy = translator.translate(text, max_length=4)
    assert state(greedy) == State(text=greedy.source_text, model=named)
    beam = translator.translate("one", beam_size=3, max_length=4)
    assert state(beam) == State(text="one", model=named, decode="beam-3")
    forced = translator.force("one", "two three")
    assert state(forced) == State(text="one", model=named, target=forced.text)
    sampled = translator.translate("one", sample=Sampling(seed=7), max_length=4)
    assert state(sampled).target == sampled.text
    change = do.ablate("cross", 1, 2)
    changed = translator.translate("one", max_length=3, interventions=[change])
    assert state(changed) == State(text="one", model=named, changes=(change,))


def test_a_text_that_a_model_wrote_opens_on_its_own_page(translator: Translator):
    model = random_language_model(vocab_size=translator.tokenizer.vocab_size, trained_length=30)
    run = Translator(model, translator.tokenizer, name="writer").generate("one two", max_length=9)
    assert state(run) == State(prompt="one two", model="writer")
    assert (address(run) or {})["page"] == "language_model"


def test_a_text_that_no_address_holds_has_none(translator: Translator):
    assert address(translator.force("one " * 1000, "two")) is None
