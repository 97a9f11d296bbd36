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

LIGHT = """transformer transformer.hub.files transformer.interventions transformer.storage.description
transformer.equations transformer.run explorer.lenses.words.reading explorer.lenses.heads.roles"""


def test_every_public_name_is_the_one_of_its_module_and_that_of_type_checkers():
    for name in transformer.__all__:
        assert getattr(transformer, name).__name__.rpartition(".")[2] == name
        assert name in dir(transformer)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = transformer.Nothing
    assert list(REGISTRY) == list(ENCODINGS)
    nodes = ast.walk(ast.parse(inspect.getsource(transformer)))
    guarded = next(node for node in nodes if isinstance(node, ast.If))
    told = {alias.name: node.module for node in guarded.body for alias in node.names}
    found = {name: getattr(transformer, name) for name in told}
    homes = {name: getattr(value, "__module__", "transformer") for name, value in found.items()}
    assert homes == told
    assert sorted(told) == sorted(transformer.__all__)


def test_what_needs_no_pytorch_does_not_load_it():
    code = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
    code += "    assert 'torch' not in sys.modules, name"
    command = [sys.executable, "-c", code, *LIGHT.split()]
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True)
