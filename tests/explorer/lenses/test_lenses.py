"""The measures are names of the package, light to import, and refuse a recurrent model in one sentence."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from random_models import random_recurrent

from explorer import lenses
from explorer.lenses.measures.effect import effect_in
from transformer import Capture
from transformer.translator import Translator
from transformer.view import Window

ASKS: dict[str, Callable[..., object]] = {
    "alti": lambda model, run: lenses.alti(model.model, run),
    "attribution": lambda model, run: lenses.attribution(model.model, run, 0, 5),
    "carried": lambda model, run: lenses.carried(model.model, run, "cross", 0, 0),
    "carried_together": lambda model, run: lenses.carried_together(model.model, run, "cross", 0),
    "effect": lambda model, run: lenses.effect(model, run, "cross", 0, 0),
    "rewired": lambda model, run: lenses.rewired(model, run, "cross", 0, 0, run.weights("cross", 0, 0)[None]),
    "score_parts": lambda model, run: lenses.score_parts(model.model, run, ("cross", 0, 0), 0, 0),
    "value_zeroing": lambda model, run: lenses.value_zeroing(model.model, run, "cross", 0),
    "by_source": lambda model, run: lenses.by_source(model.model, run, 0, 5),
    "on_difference": lambda model, run: lenses.on_difference(model, run, 0, 5),
    "word_effect": lambda model, run: lenses.word_effect(model, run),
}
OTHERS: dict[str, Callable[..., object]] = {
    "Effects": lenses.Effects,
    "effect_in": lambda model, run: effect_in(model, run, "cross", 0, 0, Window(0, 1, 0, 1)),
}


@pytest.mark.parametrize("score", ["dot", "additive", "local"])
def test_every_measure_refuses_a_recurrent_model_in_one_sentence(score: str, translator: Translator):
    network = random_recurrent(score, vocab_size=translator.config.vocab_size)
    model = Translator(network, translator.tokenizer, name="recurrent")
    run = model.force("one two three", "two one", capture=Capture(residual=True))
    measures = {name for name in lenses.__all__ if name[0].islower()}
    assert measures - {"source_words", "compare_runs"} == {*ASKS}
    for ask in (ASKS | OTHERS).values():
        with pytest.raises(lenses.UnmeasuredError, match=r"^This measure needs a Transformer[^.]*\.$"):
            ask(model, run)


def test_every_name_is_the_one_of_its_module_and_a_measure_says_what_it_raises_and_returns():
    values = {name: getattr(lenses, name) for name in lenses.__all__}
    assert {name: value.__name__ for name, value in values.items()} == {name: name for name in values}
    assert {value.__module__ for value in values.values()} == {
        *(f"explorer.lenses.measures.{name}" for name in ("attribution", "effect", "stream")),
        "explorer.lenses.what_if.two_runs",
    }
    assert {*lenses.__all__} <= {*dir(lenses)}
    for name, value in values.items():
        words = inspect.getdoc(value) or ""
        assert words, name
        assert name not in ASKS or ("Error" in words and "Returns" in words), name
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = lenses.Nothing


def test_the_package_alone_does_not_load_pytorch():
    code = "import sys; import explorer.lenses; print('torch' in sys.modules)"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
