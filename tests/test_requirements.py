"""The pinned packages may be used by anybody: their licences are permissive; the locks hold all of
them.

A tool of the tests, which is used unchanged and not passed on, may also be under MPL-2.0
(hypothesis).
"""

import re
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PINS = {
    name: version
    for file in ("requirements.txt", "requirements-dev.txt")
    for name, version in re.findall(
        r"^([\w.-]+)==([\w.]+)$", (ROOT / file).read_text(), re.MULTILINE
    )
}
PERMISSIVE = re.compile(
    r"Apache|BSD|0BSD|MIT|Zlib|CC0|BSL-1\.0|LLVM-exception|Python Software "
    r"Foundation|PSF|matplotlib"
)


def licences(name: str) -> list[str]:
    """What a package says of its licence: an expression, classifiers, or the heads of its licence
    files."""
    about = metadata.metadata(name)
    if expression := about.get("License-Expression"):
        return re.split(r" (?:AND|OR|WITH) ", expression.replace("(", "").replace(")", ""))
    stated = [
        each.rpartition(" :: ")[2]
        for each in about.get_all("Classifier") or []
        if "License ::" in each
    ]
    if stated or about.get("License"):
        return stated or [about["License"].splitlines()[0]]
    files = [
        file for file in metadata.files(name) or [] if file.name.startswith(("LICENSE", "LICENCE"))
    ]
    return [file.read_text()[:200] for file in files]


@pytest.mark.parametrize("name", PINS)
def test_a_pinned_package_is_under_a_permissive_licence(name: str) -> None:
    found = licences(name)
    assert found
    app = (ROOT / "requirements.txt").read_text()
    for licence in found:
        assert PERMISSIVE.search(licence) or (licence == "MPL-2.0" and f"{name}==" not in app), (
            licence
        )
        assert "GPL" not in licence


def test_the_locks_hold_every_pin_and_a_hash_for_each_package():
    locked: dict[str, str] = {}
    for file in ("requirements.lock", "requirements-dev.lock"):
        entries = re.split(r"\n(?=\S)", (ROOT / file).read_text().strip())
        for entry in entries[entries[0].startswith("-r ") :]:
            assert "--hash=sha256:" in entry, entry
            name, _, version = re.split(r"\s", entry)[0].partition("==")
            assert version, entry
            locked[name.lower()] = version
    pins = {name.lower(): version for name, version in PINS.items() if name != "torch"}
    assert pins.items() <= locked.items()
    assert not {name for name in locked if name.startswith(("torch", "nvidia", "cuda", "triton"))}
