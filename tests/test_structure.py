import ast
import functools
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import transformer
from transformer.config import ENCODINGS
from transformer.encodings import REGISTRY

ROOT = Path(__file__).parents[1]
FOLDERS = ("transformer", "explorer", "pages", "app.py")
parse = functools.cache(ast.parse)
"""Each file is read into a tree once."""
APP = "explorer/app"


def files(folder: str) -> list[Path]:
    """The Python files of a folder, or the one file of that name."""
    path = ROOT / folder
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def mentions(words: set[str], folders: tuple[str, ...]) -> set[str]:
    """Files in which a name or an attribute is one of the words."""
    found = set()
    for path in (path for folder in folders for path in files(folder)):
        nodes = ast.walk(parse(path.read_text()))
        names = {getattr(node, "id", getattr(node, "attr", "")) for node in nodes}
        if names & words:
            found.add(path.relative_to(ROOT).as_posix())
    return found


PLACES = {
    # only the server keeps what visitors share
    "cache_resource cache_data": "explorer/app/server/",
    "fragment dialog": "explorer/app/controls/parts.py",  # the door that says what a part refuses
    "session_state": "explorer/app/address/session.py",  # only one file knows the session
}


@pytest.mark.parametrize("words", PLACES)
def test_what_has_one_place_in_the_app_is_nowhere_else(words: str):
    found = mentions({*words.split()}, (APP, "pages", "app.py"))
    assert found
    assert not {path for path in found if not path.startswith(PLACES[words])}


def by_keyword(source: str, names: dict[str, set[str]]) -> Iterator[str]:
    """Arguments that calls of some functions give by keyword, but for those that have to be given
    so."""
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            yield from (
                f"{name}({keyword.arg})"
                for keyword in node.keywords
                if keyword.arg not in names.get(name, {keyword.arg})
            )


def test_what_decides_a_kept_value_is_given_by_its_place():
    # `remembered` tells values apart by these arguments, not by those that are given by keyword.
    kept = {
        node.name: {kwonlyarg.arg for kwonlyarg in node.args.kwonlyargs}
        for path in files(APP)
        for node in ast.walk(parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and "remembered"
        in {getattr(getattr(each, "func", None), "id", "") for each in node.decorator_list}
    }
    assert len(kept) > 20
    assert not [found for path in files(APP) for found in by_keyword(path.read_text(), kept)]
    assert [*by_keyword("a.of_run(opened, 1, against=2, tell=print)", kept)] == ["of_run(against)"]


def test_a_part_that_has_a_clock_always_has_it():
    # A late tick would else draw it without a clock, and Streamlit would send the fragments in it
    # too early.
    pattern = re.compile(r"run_every=(.*)")
    given = [
        rest for path in files(APP) for rest in pattern.findall(path.read_text(encoding="utf-8"))
    ]
    assert given
    assert not [rest for rest in given if " if " in rest or "None" in rest]


WRITERS = {
    "setattr",
    "delattr",
    "__setattr__",
    "__delattr__",
    "register_buffer",
    "register_parameter",
}


def written_attributes(source: str) -> Iterator[str]:
    """What modules of torch, which have a ``forward``, write to themselves after ``__init__``."""
    for module in (node for node in ast.walk(parse(source)) if isinstance(node, ast.ClassDef)):
        methods = {part.name: part for part in module.body if isinstance(part, ast.FunctionDef)}
        methods.pop("__init__", None)
        for node in (
            node for method in methods.values() for node in ast.walk(method) if "forward" in methods
        ):
            text = ast.unparse(node)
            stored = (
                isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
                and "." in text.split("[")[0]
            )
            called = isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in WRITERS
            yield from (text,) * (stored or called)


def test_forward_writes_no_attribute_of_any_module():
    assert not [
        written for path in files("transformer") for written in written_attributes(path.read_text())
    ]
    for line in (
        "self.weights[0] = x",
        "self.count += 1",
        "object.__setattr__(self, 'a', x)",
        "del self.a",
    ):
        would = written_attributes(f"class A:\n    def forward(self, x):\n        {line}\n")
        assert list(would), f"{line} would not be found"


SAY_NOTHING = {
    "told",
    "asked",
    "found",
    "own",
    "made",
    "given",
    "kept",
    "held",
    "shown",
    "each",
    "within",
}
"""Participles and small words, which name no thing and no deed."""
STORED = {
    "StripsFeed.given",
    "Note.asked",
    "Profile.kept",
    "Profile.told",
    "SetRow.given",
    "set_row.given",
    "_entry.told",
}
"""Names of arrays and of keys in files that the project ships or reads."""


def names_of_signatures(source: str) -> Iterator[str]:
    """Functions, classes, parameters and fields of a file, each with what it stands in."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.FunctionDef):
            taken = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            yield from (f"{node.name}.{argument.arg}" for argument in taken)
        elif isinstance(node, ast.ClassDef):
            targets = [part.target for part in node.body if isinstance(part, ast.AnnAssign)]
            yield from (f"{node.name}.{name.id}" for name in targets if isinstance(name, ast.Name))


def test_no_signature_has_a_name_that_says_nothing():
    sources = (path.read_text() for folder in FOLDERS for path in files(folder))
    names = {name for source in sources for name in names_of_signatures(source)}
    empty = {name for name in names if name.rpartition(".")[2].strip("_").lower() in SAY_NOTHING}
    assert empty == STORED


def test_every_file_is_called_by_its_subject():
    drawers = {"utils", "util", "helpers", "helper", "common", "misc"}
    told = {"told", "shown", "drawn", "found", "here", "computed", "given", "facts"}
    paths = [path for folder in (*FOLDERS, "tests") for path in files(folder)]
    assert not [path for path in paths if {path.stem, path.parent.name} & (drawers | told)]


UNWANTED = {"explorer.figures": "torch streamlit", "transformer": "plotly streamlit"}
UNWANTED |= {"explorer": "torch plotly streamlit"}
NO_TORCH = (
    "explorer.lenses.words.reading, explorer.lenses.heads.roles, transformer.hub.files, "
    "transformer.run"
)
NO_TORCH += ", transformer.interventions, transformer.storage.description, transformer.equations"
UNWANTED |= {NO_TORCH: "torch"}


@pytest.mark.parametrize(("package", "unwanted"), UNWANTED.items())
def test_importing_a_package_loads_nothing_that_it_must_not_know(package, unwanted):
    code = f"import sys, {package}; print(sorted(set(sys.modules) & set({unwanted.split()!r})))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


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


SLEEPS = {"sleep", "wait_for_timeout"}
"""Calls that do nothing but wait: too short on a busy machine, and too long on every other."""


def sleeps(source: str) -> list[int]:
    """Lines that call one of them."""
    calls = (node for node in ast.walk(parse(source)) if isinstance(node, ast.Call))
    return [
        call.lineno
        for call in calls
        if getattr(call.func, "attr", getattr(call.func, "id", "")) in SLEEPS
    ]


def test_no_test_sleeps():
    assert not {
        path.name: sleeps(path.read_text()) for path in files("tests") if sleeps(path.read_text())
    }
    for call in ("time.sleep(1)", "sleep(1)", "page.wait_for_timeout(5)", "await a.sleep(0)"):
        assert sleeps(f"async def test():\n    {call}") == [2]
