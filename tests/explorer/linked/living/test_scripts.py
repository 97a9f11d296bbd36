from __future__ import annotations

import re
from pathlib import Path

import pytest

from explorer.linked.living.scripts import ENTRY, REPLACED, JoinError, joined, script, static, style


def write(folder: Path, **modules: str) -> Path:
    """Scripts of a folder `a`; two underscores in a name stand for the folder's end."""
    for name, text in modules.items():
        path = folder / f"{name.replace('__', '/')}.js"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_modules_run_once_each_after_those_that_they_need(tmp_path: Path):
    folder = write(
        tmp_path,
        a__one='import {\n  two as deux,\n  three,\n} from "./two.js";\n'
        'import { far } from "../b/far.js";\ndeux(far);\n',
        a__two='import { far } from "../b/far.js";\nexport function two() {}\nexport const three = far;\n',
        b__far="export class far {}\n",
    )
    made = joined(folder, "a/one.js", {})
    places = [made.index(f'modules["{name}"] = ') for name in ("b/far.js", "a/two.js", "a/one.js")]
    assert places == sorted(places)
    assert made.count("modules[") == 3 + 3
    assert "const { two : deux, three } = modules" in made
    assert "return { two, three };" in made
    assert not re.search(r"^\s*(import|export) ", made, re.M)


def test_one_module_stands_in_for_another(tmp_path: Path):
    own = "export const it = 1;\n"
    folder = write(tmp_path, a__one='import { it } from "./it.js";\n', a__it="import.meta\n", a__own=own)
    assert "import.meta" not in joined(folder, "a/one.js", {"a/it.js": "a/own.js"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('import it from "./it.js";', "import it"),
        ('import * as it from "./it.js";', "import \\*"),
        ('import "./it.js";', "import"),
        ("export default 1;", "export default"),
        ("export { it };", "export { it }"),
        ("export let it = 1;", "export let"),
        ('const it = await import("./it.js");', "import\\("),
        ("const it = import.meta.url;", "import.meta"),
        ('const it = "</SCRIPT>";', "ends a script"),
        ('const it = "<!--";', "ends a script"),
        ('import { it } from "./absent.js";', "no script a/absent.js"),
        ('import { it } from "../../it.js";', "no folder of scripts"),
        ('import { it } from "./one.js";', "circle"),
    ],
)
def test_what_cannot_be_joined_is_refused(tmp_path: Path, text: str, told: str):
    folder = write(tmp_path, a__one=text, a__it="export const it = 1;")
    with pytest.raises(JoinError, match=told):
        joined(folder, "a/one.js", {})


def test_the_page_s_script_has_each_module_once_and_fetches_nothing():
    made = script()
    assert made == joined(static(), ENTRY, REPLACED)
    names = re.findall(r'^modules\["(.*?)"\] = ', made, re.M)
    assert len(names) == len(set(names)) > 25
    assert not {*REPLACED} & {*names}
    assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket|localStorage|importScripts", made)
    assert "@import" not in style()
    assert "url(" not in style()
