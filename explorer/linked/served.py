"""The folder of scripts in `static/`, whose name has their version; `manifest.json` there is the
one place that says it.

Streamlit sends `app/static/` without saying for how long, so a browser keeps a file for a tenth of
its age, which may be days; and scripts import each other by relative names, which carry no query.
So what changes from one release to the next needs another path. All scripts share one folder, as
those of one part import those of another. `python -m explorer.linked.served` notes what the folder
holds, and renames it if the release before had other contents under the same name.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import transformer
from transformer.storage.typed import read_typed, typed

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """What `manifest.json` says."""

    folder: str  # the folder of scripts, with its version: `scripts-1`
    release: str  # the release of this package for which that version was begun
    sha256: dict[str, str]  # of the contents of each folder inside

    @property
    def following(self) -> str:
        """The name that the folder has in the next version."""
        stem, _, number = self.folder.rpartition("-")
        return f"{stem}-{int(number) + 1}"


def static() -> Path:
    """The folder of all files for browsers: beside app.py in a checkout, in the package where that
    is installed."""
    inside = Path(__file__).parent / "static"
    if inside.is_dir():
        return inside
    return Path(__file__).parents[2] / "static"


def manifest(directory: Path) -> Manifest:
    """What is noted of a folder of files for browsers; CheckpointError if that is damaged."""
    return read_typed(directory / MANIFEST, lambda values: typed(Manifest, values))


@cache
def scripts() -> Path:
    """The folder of the scripts."""
    return static() / manifest(static()).folder


def imported(
    name: str,  # of a script, such as `page/slots.js`
) -> str:
    """What imports a script in the app, in JavaScript."""
    return f'import(new URL("app/static/{scripts().name}/{name}", document.baseURI))'


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of the names and contents of all files in each folder of a folder."""
    sums = {}
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        digest = hashlib.sha256()
        for path in sorted(inner.iterdir()):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.name} {content}\n".encode())
        sums[inner.name] = digest.hexdigest()
    return sums


def note(directory: Path, release: str) -> Manifest:
    """Notes what the scripts are in a release; what a release before had keeps its name for itself.

    Returns what is noted now.
    """
    noted = manifest(directory)
    sums = digests(directory / noted.folder)
    if sums == noted.sha256:
        return noted
    folder = noted.folder
    if release != noted.release:
        folder = noted.following
        (directory / noted.folder).rename(directory / folder)
    changed = Manifest(folder=folder, release=release, sha256=sums)
    text = json.dumps(asdict(changed), indent=1) + "\n"
    (directory / MANIFEST).write_text(text, encoding="utf-8")
    return changed


if __name__ == "__main__":
    print(note(static(), transformer.__version__).folder)
