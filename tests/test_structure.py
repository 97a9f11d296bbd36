import ast
import functools
import graphlib
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
ROOMS = {
    "transformer": (
        *("text", "config", "encodings", "hooks", "attention", "layers", "model", "recurrent", "packed"),
        *("view", "interventions", "trace", "equations", "stream", "audit", "decoding", "beam", "run"),
        *("sampling", "storage", "families", "training", "hub", "devices"),
        *("requests", "translator", "batches", "exports", "commands"),
    ),
    "explorer.lenses": (*("inside", "words", "measures", "targets", "circuits", "what_if", "heads"),),
    "explorer.figures": ("base", "maps", "pages"),
    "explorer.linked": ("view", "living", "live"),
    "explorer.commands": ("align", "survey", "page", "live"),
    "explorer.app": ("address", "server", "lessons", "controls", "shell", "maps", "sections"),
}
"""The rooms of each package, ground first: a folder or a file imports from its own room and those before."""
MAY_IMPORT = {
    "transformer": {"transformer"},
    "explorer/lenses": {"explorer.lenses", "transformer"},
    "explorer/figures": {"explorer.figures", "transformer"},
    "explorer/linked": {"explorer.linked", "explorer.figures", "explorer.lenses", "transformer"},
    "explorer/commands": {*ROOMS} - {"explorer.app"},
    "explorer/app": {*ROOMS} - {"explorer.commands"},
    "pages": {*ROOMS},
    "app.py": {*ROOMS},
}
FORBIDDEN = {
    "transformer": {"streamlit", "plotly"},
    "explorer/lenses": {"streamlit", "plotly"},
    "explorer/figures": {"streamlit", "torch"},
    "explorer/linked": {"streamlit"},
    "explorer/commands": {"streamlit", "plotly"},
    "explorer/app": set(),
    "pages": {"torch"},
    "app.py": {"torch"},
}
parse = functools.cache(ast.parse)
"""Each file is read into a tree once."""
APP = "explorer/app"


def files(folder: str) -> list[Path]:
    """The Python files of a package or a folder, or the one file of that name."""
    path = ROOT / (folder.replace(".", "/") if folder in ROOMS else folder)
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def imports(source: str, package: str) -> Iterator[str]:
    """Absolute names of all modules that a source imports, those inside functions too."""
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = f"{package}." * bool(node.level) + (node.module or "")
            yield base.rstrip(".")
            yield from (f"{base.rstrip('.')}.{alias.name}" for alias in node.names)


def module_of(path: Path) -> str:
    """The dotted name of a file; a folder's ``__init__`` is named after the folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for package in ROOMS for path in files(package)}
SOURCES = {name: path.read_text() for name, path in MODULES.items()}


def own_modules(name: str) -> set[str]:
    """Names of the project's own modules that one of them imports."""
    package = name if MODULES[name].stem == "__init__" else name.rpartition(".")[0]
    return set(imports(SOURCES[name], package)) & set(MODULES) - {name}


def package_of(name: str) -> str | None:
    """The package that a module or a name in it belongs to; None for others."""
    return next((each for each in ROOMS if f"{name}.".startswith(f"{each}.")), None)


def room_of(name: str) -> tuple[str, int] | None:
    """The package and the rank of the room that a module stands in; None for those outside all rooms."""
    if (package := package_of(name)) is None:
        return None
    room = name.removeprefix(package).removeprefix(".").partition(".")[0]
    return (package, ROOMS[package].index(room)) if room in ROOMS[package] else None


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_follow_the_arrows(folder):
    for path in files(folder):
        names = {*imports(path.read_text(), ".".join(path.relative_to(ROOT).parent.parts))}
        assert not {name.split(".")[0] for name in names} & FORBIDDEN[folder], path
        assert {*map(package_of, names)} - {None} <= MAY_IMPORT[folder], path
        assert not [name for name in names if name.split(".")[0] in ("pages", "app")], path


def test_the_paper_s_package_imports_no_other_not_by_a_string_either():
    for path in files("transformer"):
        strings = (node.value for node in ast.walk(parse(path.read_text())) if isinstance(node, ast.Constant))
        assert not [text for text in strings if isinstance(text, str) and text.startswith("explorer.")], path


@pytest.mark.parametrize("package", ROOMS)
def test_every_folder_and_every_other_file_is_a_room(package):
    folder = ROOT / package.replace(".", "/")
    rooms = {path.relative_to(folder).parts[0].removesuffix(".py") for path in folder.rglob("*.py")}
    assert rooms - {"__init__", "__main__"} == set(ROOMS[package])


@pytest.mark.parametrize("package", ROOMS)
def test_imports_run_down_or_stay_in_the_room(package):
    for name in (name for name in MODULES if package_of(name) == package):
        if (own := room_of(name)) is None:
            continue
        others = {other: room_of(other) for other in own_modules(name)}
        wrong = [other for other, room in others.items() if room and room[0] == own[0] and room[1] > own[1]]
        assert not wrong, name
        depth = package.count(".") + 1
        outside = {other for other in imports(SOURCES[name], "") if other.count(".") == depth} - set(others)
        front = {other for other in outside if other.startswith(f"{package}.")}
        assert not front, f"{name}: the front door is for others"


def test_no_module_imports_itself_in_a_circle():
    graph = {name: own_modules(name) - set(ROOMS) for name in set(MODULES) - set(ROOMS)}
    assert set(graphlib.TopologicalSorter(graph).static_order()) == set(graph)


def test_no_page_s_sections_import_another_s():
    sections = "explorer.app.sections."
    for name in (name for name in MODULES if name.startswith(sections)):
        own = sections + name.removeprefix(sections).partition(".")[0]
        others = {other for other in own_modules(name) if other.startswith(sections)}
        if own in MODULES and MODULES[own].name == "__init__.py":
            assert not {other for other in others if not f"{other}.".startswith(f"{own}.")}, name


def test_every_folder_with_python_is_a_package_and_says_what_it_is_for():
    for folder in {path.parent for package in ROOMS for path in files(package)}:
        text = ast.get_docstring(parse((folder / "__init__.py").read_text())) or ""
        assert len(text.partition("\n")[0]) > 10, folder


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_replace"  # of named tuples


OTHERS_PRIVATE = {"torch"}
"""Libraries of which something private is used because nothing public does it."""


def reached(source: str) -> Iterator[str]:
    """Private names of other files that a source imports or reaches: ``from x import _a``, ``module._a``."""
    tree = parse(source)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.target.id for node in ast.walk(tree) if declared(node)}
    own |= {node.attr for node in ast.walk(tree) if stored(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.name for alias in node.names if private(alias.name.split(".")[-1]))
        if isinstance(node, ast.Attribute) and private(node.attr) and node.attr not in own:
            path = ast.unparse(node)
            yield from () if path.split(".")[0] in OTHERS_PRIVATE else (path,)


def declared(node: ast.AST) -> bool:
    """A field of a class: ``_a: int``."""
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


def stored(node: ast.AST) -> bool:
    """``self._a = …``."""
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def test_no_private_name_crosses_a_file():
    found = {name: list(reached(source)) for name, source in SOURCES.items()}
    assert not {name: reaching for name, reaching in found.items() if reaching}
    for line in ("from a import _b", "import a\na._b", "def f(a):\n    return a._b()"):
        assert list(reached(line)), f"{line} would not be found"


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
    "cache_resource cache_data": "explorer/app/server/",  # only the server keeps what visitors share
    "fragment dialog": "explorer/app/controls/parts.py",  # the door that says what a part refuses
    "session_state": "explorer/app/address/session.py",  # only one file knows the session
}


@pytest.mark.parametrize("words", PLACES)
def test_what_has_one_place_in_the_app_is_nowhere_else(words: str):
    found = mentions({*words.split()}, (APP, "pages", "app.py"))
    assert found
    assert not {path for path in found if not path.startswith(PLACES[words])}


def by_keyword(source: str, names: dict[str, set[str]]) -> Iterator[str]:
    """Arguments that calls of some functions give by keyword, but for those that have to be given so."""
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            yield from (
                f"{name}({each.arg})" for each in node.keywords if each.arg not in names.get(name, {each.arg})
            )


def test_what_decides_a_kept_value_is_given_by_its_place():
    # `remembered` tells values apart by these arguments, not by those that are given by keyword.
    kept = {
        node.name: {each.arg for each in node.args.kwonlyargs}
        for path in files(APP)
        for node in ast.walk(parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and "remembered" in {getattr(getattr(each, "func", None), "id", "") for each in node.decorator_list}
    }
    assert len(kept) > 20
    assert not [found for path in files(APP) for found in by_keyword(path.read_text(), kept)]
    assert [*by_keyword("a.of_run(opened, 1, against=2, tell=print)", kept)] == ["of_run(against)"]


def test_a_part_that_has_a_clock_always_has_it():
    # A late tick would else draw it without a clock, and Streamlit would send the fragments in it too early.
    pattern = re.compile(r"run_every=(.*)")
    given = [rest for path in files(APP) for rest in pattern.findall(path.read_text(encoding="utf-8"))]
    assert given
    assert not [rest for rest in given if " if " in rest or "None" in rest]


WRITERS = {"setattr", "delattr", "__setattr__", "__delattr__", "register_buffer", "register_parameter"}


def written_attributes(source: str) -> Iterator[str]:
    """What modules of torch, which have a ``forward``, write to themselves after ``__init__``."""
    for module in (node for node in ast.walk(parse(source)) if isinstance(node, ast.ClassDef)):
        methods = {part.name: part for part in module.body if isinstance(part, ast.FunctionDef)}
        methods.pop("__init__", None)
        for node in (node for each in methods.values() for node in ast.walk(each) if "forward" in methods):
            text = ast.unparse(node)
            stored = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del) and "." in text.split("[")[0]
            called = isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in WRITERS
            yield from (text,) * (stored or called)


def test_forward_writes_no_attribute_of_any_module():
    assert not [written for path in files("transformer") for written in written_attributes(path.read_text())]
    for line in ("self.weights[0] = x", "self.count += 1", "object.__setattr__(self, 'a', x)", "del self.a"):
        would = written_attributes(f"class A:\n    def forward(self, x):\n        {line}\n")
        assert list(would), f"{line} would not be found"


SAY_NOTHING = {"told", "asked", "found", "own", "made", "given", "kept", "held", "shown", "each", "within"}
"""Participles and small words, which name no thing and no deed."""
STORED = {"Note.asked", "Profile.kept", "Profile.told", "_entry.told"}
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
    sources = [*SOURCES.values(), *(path.read_text() for path in (ROOT / "app.py", *files("pages")))]
    names = {name for source in sources for name in names_of_signatures(source)}
    empty = {name for name in names if name.rpartition(".")[2].strip("_").lower() in SAY_NOTHING}
    assert empty == STORED


def test_every_file_is_called_by_its_subject():
    drawers = {"utils", "util", "helpers", "helper", "common", "misc"}
    told = {"told", "shown", "drawn", "found", "here", "computed", "given", "facts"}
    paths = [path for folder in (*MAY_IMPORT, "tests") for path in files(folder)]
    assert not [path for path in paths if {path.stem, path.parent.name} & (drawers | told)]


UNWANTED = {"explorer.figures": "torch streamlit", "transformer": "plotly streamlit"}
UNWANTED |= {"explorer": "torch plotly streamlit"}
NO_TORCH = (
    "explorer.lenses.words.reading, explorer.lenses.heads.roles, transformer.hub.files, transformer.run"
)
NO_TORCH += ", transformer.interventions, transformer.storage.description, transformer.equations"
UNWANTED |= {NO_TORCH: "torch"}


@pytest.mark.parametrize(("package", "unwanted"), UNWANTED.items())
def test_importing_a_package_loads_nothing_that_it_must_not_know(package, unwanted):
    code = f"import sys, {package}; print(sorted(set(sys.modules) & set({unwanted.split()!r})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
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
