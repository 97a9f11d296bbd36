"""Every Python snippet of README and docs/ runs alone; what pip installs works in an empty
folder."""

import email
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

from explorer import __main__ as explorer_program
from transformer import __main__ as transformer_program

ROOT = Path(__file__).parents[1]
TEXTS = [path.read_text() for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))]
SNIPPETS = sorted(
    {code for text in TEXTS for code in re.findall(r"(?ms)^```python\n(.*?)^```", text)}
)
LINKS = sorted(
    set(
        re.findall(
            r"\[([\w-]+)\]\((\.\./[\w./]+\.py)\)", (ROOT / "docs" / "architecture.md").read_text()
        )
    )
)
MODEL = ROOT / "assets" / "models" / "en-de"


def test_the_readme_has_snippets_and_is_short() -> None:
    assert SNIPPETS
    assert len(TEXTS[0].splitlines()) <= 150
    assert max(len(text.splitlines()) for text in TEXTS) <= 200


def test_the_readme_counts_the_lines_of_the_paper_s_model() -> None:
    model, rest = TEXTS[0].split("The paper's model is ")[1].split("\n\n")[0].split(" lines of ")
    files = re.findall(r"\((transformer/\w+\.py)\)", rest)
    lines = sum(len((ROOT / path).read_text().splitlines()) for path in files)
    assert (len(files), model) == (4, f"{lines:,}")


def test_every_file_that_the_texts_link_to_is_there() -> None:
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        text = path.read_text()
        links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
        for link in (*links, *re.findall(r'(?:src|srcset)="(?!https?:)([^"]+)"', text)):
            assert (path.parent / link).exists(), (path, link)


TRACKED = subprocess.run(
    ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout
FOLDERS = "explorer|transformer|tests|static|pages|benchmarks|assets|docs|deploy"
NAMING = re.compile(rf"(?<![\w/.\"'-])(?:{FOLDERS})/[\w./-]*\w")
MADE_UP = {"assets/lessons/NN-name.json", "assets/en-de"}
"""Names that stand for any, in a text, and one that a test says is not there."""


def there(name: str) -> bool:
    """Whether a path is there, or the beginning of one."""
    return (ROOT / name).exists() or next(ROOT.glob(f"{name}*"), None) is not None


def test_every_path_that_a_text_a_comment_or_a_script_names_is_there() -> None:
    kinds = (".md", ".py", ".js", ".ts", ".css", ".sh", ".toml", ".yml")
    files = [name for name in TRACKED.splitlines() if name.endswith(kinds) and there(name)]
    read = [name for name in files if not name.startswith(("CHANGELOG", "tests/acceptance"))]
    named = {
        (name, path) for name in read for path in NAMING.findall((ROOT / name).read_text("utf-8"))
    }
    assert [
        (name, path) for name, path in sorted(named) if path not in MADE_UP and not there(path)
    ] == []


def test_every_script_of_the_list_of_static_is_there() -> None:
    text = (
        (ROOT / "static" / "README.md").read_text().replace("package/plotly-cartesian.min.js", "")
    )
    named = re.findall(r"`([\w./-]+\.(?:js|ts|css|json|wasm|sh|py))`", text)
    files = {Path(name).name for name in TRACKED.splitlines()}
    assert [name for name in named if Path(name).name not in files] == []


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.stem)
def test_the_rows_of_a_table_have_as_many_cells_as_its_head(path: Path) -> None:
    for table in re.findall(r"(?m)(?:^\|.*\n)+", path.read_text()):
        cells = [
            len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", line)))
            for line in table.splitlines()
        ]
        assert set(cells) == {cells[0]}, table.splitlines()[
            cells.index(next(n for n in cells if n != cells[0]))
        ]


@pytest.mark.parametrize(
    "program", [transformer_program, explorer_program], ids=lambda each: each.__name__
)
def test_every_command_that_a_text_names_is_one(program: ModuleType) -> None:
    name = program.__name__.removesuffix(".__main__")
    named = {
        command
        for text in TEXTS
        for command in re.findall(rf"`(?:python -m )?{name} (\w+)\b", text)
    }
    assert named - program._commands().keys() == set()
    programs = re.findall(r"(?m)^\| `(\w+) \w+", "\n".join(TEXTS))
    assert set(programs) <= {"transformer", "explorer", "python", "pytest"}


DOTTED = re.compile(r"`((?:explorer|transformer)(?:\.\w+)+)`")


def test_every_dotted_name_in_a_text_or_a_comment_is_there() -> None:
    texts = [
        (ROOT / name).read_text("utf-8")
        for name in TRACKED.splitlines()
        if name.endswith((".py", ".md"))
    ]
    for name in sorted({name for text in texts for name in DOTTED.findall(text)}):
        parent, _, last = name.rpartition(".")
        with suppress(ImportError):
            importlib.import_module(name)
            continue
        value = importlib.import_module(parent) if importlib.util.find_spec(parent) else None
        assert hasattr(value, last), name


@pytest.mark.parametrize(("name", "file"), LINKS)
def test_a_name_of_the_architecture_is_where_it_says(name: str, file: str) -> None:
    path = (ROOT / "docs" / file).resolve()
    assert path.stem == name or re.search(
        rf"^(?:(?:class|def) )?{name}\b", path.read_text(), re.MULTILINE
    )


def test_ci_installs_nothing_that_the_section_on_tests_does_not_name() -> None:
    section = TEXTS[0].split("## Test\n")[1].split("\n## ")[0]
    (installed,) = re.findall(
        r"apt-get install (?:-\S+ )*([^>\n]*)", (ROOT / ".ci" / "run").read_text()
    )
    assert [name for name in installed.split() if f"`{name}`" not in section] == []


def test_commands_read_files_that_are_here_or_that_a_command_before_wrote() -> None:
    written: set[str] = set()
    for line in TEXTS[0].split("## Command line\n")[1].split("```")[1].splitlines():
        for path in re.findall(r"--data (\S+)", line):
            assert path in written or (ROOT / path).is_file(), line
        written |= {*re.findall(r"--output (\S+)", line)}


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda text: text.splitlines()[0])
def test_a_snippet_runs_alone_as_written(snippet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(snippet, {"__name__": "__main__"})


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel of this project installs."""
    source = tmp_path_factory.mktemp("source")
    site = tmp_path_factory.mktemp("site")
    for name in ("transformer", "explorer", "static"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
    made = subprocess.run(
        [sys.executable, "-c", build], cwd=source, capture_output=True, text=True, check=True
    )
    with zipfile.ZipFile(source / made.stdout.split()[-1]) as wheel:
        wheel.extractall(site)
    return site


def run_installed(site: Path, folder: Path, *arguments: str) -> str:
    """What Python prints in a folder where only what was installed can be imported."""
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_what_pip_installs_works_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    code = (
        "import explorer, sys; from explorer import figures; from transformer import "
        "load_translator\n"
        "translator = load_translator(sys.argv[1]); t = translator.translate('The house is old.')\n"
        "assert explorer.__file__.startswith(sys.argv[2]) and 'streamlit' not in sys.modules\n"
        "assert '<iframe' in explorer.show(t, translator)._repr_html_()\n"
        "figures.heatmap(t.head('cross', 2, 3)); print(t.text)"
    )
    assert (
        run_installed(installed, tmp_path, "-c", code, str(MODEL), str(installed))
        == "Das Haus ist alt."
    )
    command = (
        "-m",
        "explorer",
        "page",
        "--model",
        str(MODEL),
        "The house is old.",
        "--output",
        "run.html",
    )
    assert run_installed(installed, tmp_path, *command) == "run.html: Das Haus ist alt."
    assert (tmp_path / "run.html").read_text(encoding="utf-8").count("</script>") == 2
    command = ("-m", "transformer", "translate", "--model", str(MODEL), "The house is old.")
    assert run_installed(installed, tmp_path, *command) == "Das Haus ist alt."
    assert run_installed(installed, tmp_path, "-m", "explorer", "--help").startswith(
        "usage: python -m explorer"
    )


def test_a_wheel_says_what_it_is(installed: Path) -> None:
    (told,) = installed.glob("attention_explorer-*.dist-info/METADATA")
    found = email.message_from_string(told.read_text(encoding="utf-8"))
    cited = dict(re.findall(r"(?m)^(version|license): (.*)$", (ROOT / "CITATION.cff").read_text()))
    assert (found["Version"], found["License-Expression"]) == (cited["version"], cited["license"])
    assert found["Description-Content-Type"] == "text/markdown"
    assert found.get_payload().strip() == TEXTS[0].strip()
    urls = [each.rpartition(", ")[2] for each in found.get_all("Project-URL", [])]
    assert urls
    assert all(url in (ROOT / "CITATION.cff").read_text() for url in urls)


def test_a_wheel_has_the_scripts_of_living_pages_and_not_plotly_js(installed: Path) -> None:
    names = {
        path.relative_to(installed).as_posix() for path in installed.rglob("*") if path.is_file()
    }
    roots = {name.split("/")[0] for name in names if not name.startswith("attention_explorer-")}
    assert roots == {"transformer", "explorer"}
    scripts = [
        path
        for path in (ROOT / "static").glob("scripts-*/*/*")
        if path.suffix in {".js", ".css", ".wasm"}
    ]
    assert len(scripts) > 50
    wanted = {f"explorer/linked/{path.relative_to(ROOT).as_posix()}" for path in scripts}
    wanted.add("explorer/linked/static/manifest.json")
    assert wanted == {name for name in names if name.startswith("explorer/linked/static/")}
    modules = {
        path.relative_to(ROOT).as_posix() for room in roots for path in (ROOT / room).rglob("*.py")
    }
    assert {name for name in modules if not name.startswith("explorer/app/")} == {
        name for name in names if name.endswith(".py")
    }
