"""The measures are names of the package, light to import, and refuse a recurrent model in one sentence."""

from __future__ import annotations

import ast
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
from transformer.run import Translation
from transformer.translator import Translator
from transformer.view import Window

FUNCTIONS = [name for name in lenses.__all__ if name[0].islower()]
Ask = Callable[[Translator, Translation], object]
ASKS: dict[str, Ask] = {
    "alti": lambda model, run: lenses.alti(model.model, run),
    "attribution": lambda model, run: lenses.attribution(model.model, run, 0, 5),
    "carried": lambda model, run: lenses.carried(model.model, run, "cross", 0, 0),
    "carried_together": lambda model, run: lenses.carried_together(model.model, run, "cross", 0),
    "effect": lambda model, run: lenses.effect(model, run, "cross", 0, 0),
    "rewired": lambda model, run: lenses.rewired(model, run, "cross", 0, 0, run.weights("cross", 0, 0)[None]),
    "rollout": lambda model, run: lenses.rollout(run),
    "saliency": lambda model, run: lenses.saliency(model, run, 0, 5),
    "score_parts": lambda model, run: lenses.score_parts(model.model, run, ("cross", 0, 0), 0, 0),
    "value_zeroing": lambda model, run: lenses.value_zeroing(model.model, run, "cross", 0),
    "by_source": lambda model, run: lenses.by_source(model.model, run, 0, 5),
    "on_difference": lambda model, run: lenses.on_difference(model, run, 0, 5),
    "word_effect": lambda model, run: lenses.word_effect(model, run),
}
"""Every measure of a run; ``source_words`` groups tokens."""
OTHERS: dict[str, Ask] = {
    "Effects": lenses.Effects,
    "effect_in": lambda model, run: effect_in(model, run, "cross", 0, 0, Window(0, 1, 0, 1)),
}


@pytest.fixture(scope="module", params=["dot", "additive", "local"])
def recurrent(request: pytest.FixtureRequest, translator: Translator) -> tuple[Translator, Translation]:
    network = random_recurrent(request.param, vocab_size=translator.config.vocab_size)
    model = Translator(network, translator.tokenizer, name="recurrent")
    return model, model.force("one two three", "two one", capture=Capture(residual=True))


def test_every_measure_is_asked():
    assert set(ASKS) == set(FUNCTIONS) - {"source_words", "compare_runs"}


@pytest.mark.parametrize("name", [*ASKS, *OTHERS])
def test_a_recurrent_model_is_refused_in_one_sentence(name: str, recurrent: tuple[Translator, Translation]):
    with pytest.raises(lenses.UnmeasuredError) as caught:
        (ASKS | OTHERS)[name](*recurrent)
    assert str(caught.value).startswith("This measure needs a Transformer")
    assert str(caught.value).count(".") == 1


@pytest.mark.parametrize("name", lenses.__all__)
def test_every_name_is_the_one_of_its_module_and_says_what_it_is(name: str):
    value = getattr(lenses, name)
    assert value.__name__ == name
    assert name in dir(lenses)
    assert inspect.getdoc(value)


@pytest.mark.parametrize("name", ASKS)
def test_a_measure_says_what_it_raises_and_returns(name: str):
    told = inspect.getdoc(getattr(lenses, name)) or ""
    assert "Error" in told
    assert "Returns" in told


def test_the_names_for_type_checkers_are_the_ones_at_run_time():
    guarded = next(
        node for node in ast.walk(ast.parse(inspect.getsource(lenses))) if isinstance(node, ast.If)
    )
    told = {alias.name: node.module for node in guarded.body for alias in node.names}
    assert {name: getattr(lenses, name).__module__ for name in told} == told
    assert sorted(told) == sorted(lenses.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = lenses.Nothing


def test_the_package_alone_does_not_load_pytorch():
    code = "import sys; import explorer.lenses; print('torch' in sys.modules)"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
