"""The package's own names: each comes when it is asked for."""

import ast
import inspect

import pytest

import transformer
from transformer.config import ENCODINGS
from transformer.encodings import REGISTRY


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
