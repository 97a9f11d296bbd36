from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GROUPS = (
    "config presets masks biases positions bootstrap scores cache capture search_rules hooks recorder "
    "tokenizer words reading function_words loss dropout packed",
    "attention data augment mask_variants",
    "layers",
    "model",
    "decoding beam checkpoint card",
    "audit translation inside what_if_head anatomy compare alignment patterns roles heads probe_data "
    "run_record trace_file trace_json marian marian_rules marian_tokenizer marian_weights hub hub_files "
    "hub_settings hub_push sources training progress run_files",
    "translator untrained first_heads batch survey probes retrace",
    "commands rearranged train_command experiments profiles positions_command hub_command __main__",
)
"""Modules of the package: each imports from its own group and those before it, never in a circle."""
RANK = {name: rank for rank, group in enumerate(GROUPS) for name in group.split()}
MAY_IMPORT = {
    "transformer": {"transformer"},
    "figures": {"figures"},
    "ui": {"ui", "figures", "transformer"},
    "pages": {"ui", "figures"},
    "app.py": {"ui", "figures"},
}
FORBIDDEN = {
    "transformer": {"streamlit", "plotly"},
    "figures": {"streamlit", "torch"},
    "ui": set(),
    "pages": {"torch"},
    "app.py": {"torch"},
}
WRITERS = {"setattr", "delattr", "__setattr__", "__delattr__", "register_buffer", "register_parameter"}


def files(folder: str) -> list[Path]:
    path = ROOT / folder
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def imports(source: str, package: str) -> Iterator[str]:
    """Absolute names of all modules that a source imports, those inside functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = f"{package}." * bool(node.level) + (node.module or "")
            yield base.rstrip(".")
            yield from (f"{base.rstrip('.')}.{alias.name}" for alias in node.names)


def own_modules(path: Path) -> set[str]:
    """Names of the package's own modules that one of them imports."""
    names = {
        name.split(".")[1]
        for name in imports(path.read_text(), "transformer")
        if name.startswith("transformer.")
    }
    return names & {file.stem for file in files("transformer")} - {path.stem}


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_follow_the_arrows(folder):
    for path in files(folder):
        package = ".".join(path.relative_to(ROOT).parent.parts)
        roots = {name.split(".")[0] for name in imports(path.read_text(), package)}
        assert not roots & FORBIDDEN[folder], path
        assert not roots & ({"transformer", "figures", "ui", "pages", "app"} - MAY_IMPORT[folder]), path


@pytest.mark.parametrize("path", files("transformer"), ids=lambda path: path.stem)
def test_modules_of_the_package_import_leftwards_only(path):
    if path.stem == "__init__":
        return
    assert path.stem in RANK, f"Give {path.stem} a place in GROUPS."
    wrong = {name for name in own_modules(path) if RANK[name] > RANK[path.stem]}
    assert not wrong


def test_no_module_of_the_package_imports_itself_in_a_circle():
    graph = {path.stem: own_modules(path) for path in files("transformer") if path.stem != "__init__"}
    assert set(graphlib.TopologicalSorter(graph).static_order()) == set(graph)


def forward_classes(source: str) -> list[ast.ClassDef]:
    """Classes with a ``forward``: modules of torch."""
    classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
    return [node for node in classes if any(getattr(part, "name", "") == "forward" for part in node.body)]


def written_attributes(source: str) -> Iterator[str]:
    """Stores to attributes, or into what an attribute holds, by a method other than ``__init__``."""
    for module in forward_classes(source):
        for method in module.body:
            if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                yield from filter(None, map(_written, ast.walk(method)))


def _written(node: ast.AST) -> str | None:
    target = node
    while isinstance(target, ast.Subscript):
        target = target.value
    stored = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del) and isinstance(target, ast.Attribute)
    called = isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in WRITERS
    return ast.unparse(node) if stored or called else None


@pytest.mark.parametrize("path", files("transformer"), ids=lambda path: path.stem)
def test_forward_writes_no_attribute_of_any_module(path):
    assert not list(written_attributes(path.read_text()))


def test_the_model_s_modules_are_among_those_checked():
    found = {node.name for path in files("transformer") for node in forward_classes(path.read_text())}
    assert {"MultiHeadAttention", "FeedForward", "Residual", "EncoderLayer", "DecoderLayer"} <= found
    assert {"Encoder", "Decoder", "Transformer"} <= found


@pytest.mark.parametrize(
    "line",
    [
        "self.weights = x",
        "self.weights[0] = x",
        "self.count += 1",
        "self.a, b = x",
        "self.layer.weights: int = 1",
        "setattr(self, 'a', x)",
        "object.__setattr__(self, 'a', x)",
        "self.register_buffer('a', x)",
        "del self.a",
    ],
)
def test_a_forward_that_writes_an_attribute_would_be_found(line):
    assert list(written_attributes(f"class A:\n    def forward(self, x):\n        {line}\n"))


def test_no_file_is_a_drawer_for_everything():
    drawers = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py"}
    assert not [path for folder in (*MAY_IMPORT, "tests") for path in files(folder) if path.name in drawers]


@pytest.mark.parametrize(
    ("package", "unwanted"), [("figures", "torch streamlit"), ("transformer", "plotly streamlit")]
)
def test_importing_a_package_loads_nothing_that_it_must_not_know(package, unwanted):
    code = f"import sys, {package}; print(sorted(set(sys.modules) & set({unwanted.split()!r})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
