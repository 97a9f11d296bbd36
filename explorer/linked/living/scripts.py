"""The scripts of `static/` joined into one: each module a function that returns what the module
exports."""

import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

from explorer.linked.served import scripts

ENTRY = "living/living.js"
REPLACED = {"linked_view/library.js": "living/drawing.js"}
"""What fetches plotly.js in the app draws on a canvas in a file."""
STYLES = ("linked_view/view.css", "living/living.css")
_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]*)";$', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) ([A-Za-z_$][\w$]*))", re.M)
_LEFT = re.compile(r"^\s*(?:import|export)\b.*$|\bimport\s*[.(].*$", re.M)
"""Imports and exports in any other form."""
_COMMENT = re.compile(r"^\s*//.*\n|^ */\*\*.*\*/\n", re.M)
"""Comments, also those that tell TypeScript a type, on lines of their own."""
_INDENT = re.compile(r"^ +", re.M)
_LONG_TEXT = re.compile(r"^[^`\n]*(?:`[^`\n]*`[^`\n]*)*`[^`\n]*$", re.M)
"""A text in back quotes over several lines, in which indents count."""


class JoinError(ValueError):
    """A script cannot be joined with the others."""


@cache
def style() -> str:
    """The style of a page, as one text."""
    return "\n".join(_INDENT.sub("", (scripts() / name).read_text("utf-8")) for name in STYLES)


@cache
def script() -> str:
    """The script of a page."""
    return joined(scripts(), ENTRY, REPLACED)


def joined(folder: Path, entry: str, replaced: dict[str, str]) -> str:
    """One script of a module and all that it imports, with some `replaced`; JoinError if it cannot
    be."""
    texts: dict[str, str] = {}
    needs: dict[str, list[str]] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name not in texts:
            texts[name], needs[name] = _module(folder, name, replaced)
            waiting += needs[name]
    try:
        order = list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        raise JoinError(
            f"Scripts import each other in a circle: {', '.join(error.args[1])}."
        ) from error
    return '"use strict";\nconst modules = {};\n' + "".join(texts[name] for name in order)


def _module(folder: Path, name: str, replaced: dict[str, str]) -> tuple[str, list[str]]:
    """A module as a function that is called at once, and the names of those that it imports."""
    try:
        source = (folder / name).read_text("utf-8")
    except OSError as error:
        raise JoinError(f"There is no script {name}.") from error
    needs: list[str] = []

    def taken(match: re.Match[str]) -> str:
        wanted = _resolved(name, match[2])
        needs.append(replaced.get(wanted, wanted))
        names = [
            " : ".join(name.split(" as ")) for name in map(str.strip, match[1].split(",")) if name
        ]
        return f'const {{ {", ".join(names)} }} = modules["{needs[-1]}"];'

    body = _IMPORT.sub(taken, source)
    exports = _EXPORT.findall(source)
    body = _COMMENT.sub("", _EXPORT.sub("", body))
    body = _INDENT.sub("", body)
    if (left := _LEFT.search(body) or _LONG_TEXT.search(body)) is not None:
        raise JoinError(f"{name} cannot be joined with other scripts: {left[0].strip()}")
    if re.search(r"</script|<!--", body, re.I):
        raise JoinError(f"{name} holds what ends a script in a page.")
    return (
        f'modules["{name}"] = (() => {{\n{body}return {{ {", ".join(exports)} }};\n}})();\n',
        needs,
    )


def _resolved(name: str, wanted: str) -> str:
    """The name of a module that another imports by a relative one."""
    folders: list[str] = []
    for folder in (PurePosixPath(name).parent / wanted).parts:
        if folder == "..":
            if not folders:
                raise JoinError(f"{name} imports {wanted}, which is in no folder of scripts.")
            folders.pop()
        elif folder != ".":
            folders.append(folder)
    return "/".join(folders)
