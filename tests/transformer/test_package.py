"""The package's own names: each comes when it is asked for, and what needs no PyTorch does not load it."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import transformer
from transformer.config import ENCODINGS
from transformer.encodings import REGISTRY

LIGHT = (
    "transformer",
    "transformer.hub.files",
    "explorer.lenses.words.reading",
    "transformer.interventions",
    "transformer.storage.description",
    "explorer.lenses.heads.roles",
    "transformer.equations",
    "transformer.run",
)


@pytest.mark.parametrize("name", transformer.__all__)
def test_every_public_name_is_the_one_of_its_module(name):
    value = getattr(transformer, name)
    assert value.__name__.rpartition(".")[2] == name
    assert name in dir(transformer)


def test_the_names_for_type_checkers_are_the_ones_at_run_time():
    guarded = next(
        node for node in ast.walk(ast.parse(inspect.getsource(transformer))) if isinstance(node, ast.If)
    )
    told = {alias.name: node.module for node in guarded.body for alias in node.names}
    found = {name: getattr(transformer, name) for name in told}
    homes = {name: getattr(value, "__module__", "transformer") for name, value in found.items()}
    assert homes == told
    assert sorted(told) == sorted(transformer.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = transformer.Nothing


@pytest.mark.parametrize("module", LIGHT)
def test_what_needs_no_pytorch_does_not_load_it(module):
    code = f"import sys, {module}; print('torch' in sys.modules)"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_names_of_the_encodings_are_those_of_the_registry():
    assert list(REGISTRY) == list(ENCODINGS)
