"""Every name that docs/architecture.md links to a file is defined in that file."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
LINKS = sorted(set(re.findall(r"\[([\w-]+)\]\((\.\./[\w./]+\.py)\)", (DOCS / "architecture.md").read_text())))


@pytest.mark.parametrize(("name", "file"), LINKS)
def test_a_name_of_the_architecture_is_where_it_says(name: str, file: str):
    path = (DOCS / file).resolve()
    assert path.stem == name or re.search(rf"^(?:(?:class|def) )?{name}\b", path.read_text(), re.MULTILINE)
