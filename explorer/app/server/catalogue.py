"""Which models there are: names, and the directories behind them."""

import os
from collections.abc import Iterable
from pathlib import Path

from explorer.app.address.encodings import ENCODINGS
from explorer.app.server import hub_models
from explorer.app.server.source import FILE
from explorer.app.server.stores import once
from transformer.config import SCORE_RULES, AttentionKind
from transformer.families.registry import is_model
from transformer.storage.files import read_json

ROOT = Path(__file__).resolve().parents[3]
BUNDLED = ROOT / "assets" / "models"
DEFAULT = "en-pt"
"""Opens first: of the bundled models the one with most acceptable translations on the blind list."""
TWINS = "positions"
"""Folder of the models that differ only in their positional encoding."""
RECURRENT = "recurrent"
"""Folder of the recurrent models, which differ only in the score of their attention."""
LANGUAGE = "language"
"""Folder of the language models."""
FOLDERS = ("", TWINS, RECURRENT, LANGUAGE)
"""Where models lie, within the bundled ones and within those trained here; part of their names."""
_NO_NAMES = ("", ".", "..")
KINDS = tuple(str(kind) for kind in AttentionKind)


def own_models() -> Path:
    return Path(os.environ.get("TRANSFORMER_MODELS") or ROOT / "models")


def _is_model(path: Path) -> bool:
    """Whether a directory holds a model under a name that an address can carry and no opened file has."""
    usable = path.name.isprintable() and not path.name.startswith(FILE)
    try:
        return usable and is_model(path)
    except OSError:  # longer than the name of a file may be
        return False


def _in_folder(folder: str, write: bool = False, order: Iterable[str] = ()) -> dict[str, Path]:
    """The models in a folder that translate or write, by name: bundled, then trained here; some first."""
    found: dict[str, Path] = {}
    for place in (BUNDLED / folder, own_models() / folder):
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            if _is_model(path) and writes(path) == write:
                found.setdefault(path.name, path)
    names = dict.fromkeys((*(name for name in order if name in found), *found))
    return {f"{folder}/{name}".lstrip("/"): found[name] for name in names}


def available() -> dict[str, Path]:
    """The models that translate, by name: bundled, trained, twins, and cached from the Hub."""

    def look() -> dict[str, Path]:
        found = on_disk()
        return found | {name: path for name, path in hub_models.cached().items() if name not in found}

    return once(available, look)


def on_disk() -> dict[str, Path]:
    """The same without the Hub's cache; the first is the one that opens first."""
    return _in_folder("", order=(DEFAULT,)) | twins() | recurrent()


def architecture(path: Path) -> object:
    """What a directory's config says of its architecture; None for a Transformer, and for a damaged one."""
    try:
        return read_json(path / "config.json").get("architecture")
    except ValueError:
        return None


def writes(path: Path) -> bool:
    """Whether a directory holds a language model: it reads no source, so it translates nothing."""
    return architecture(path) == "language_model"


def language_models() -> dict[str, Path]:
    """The language models by name, such as `language/lm-en`, and those among a visitor's own models."""
    return _in_folder(LANGUAGE, write=True) | _in_folder("", write=True)


def twins() -> dict[str, Path]:
    """The positional twins by name, such as `positions/rotary`: in the usual order, then the others."""
    return _in_folder(TWINS, order=ENCODINGS)


def recurrent() -> dict[str, Path]:
    """The recurrent twins by name, such as `recurrent/additive`: in the usual order, then the others."""
    return _in_folder(RECURRENT, order=SCORE_RULES)


def directory(name: str) -> Path:
    """The directory of a model.

    KeyError if there is no model of that name; a path is no name.
    """
    folder, _, own = name.rpartition("/")
    if folder in FOLDERS and own not in _NO_NAMES:
        for place in (BUNDLED, own_models()):
            if _is_model(path := place / folder / own):
                return path
    return hub_models.cached_model(name)


def changed(path: Path) -> int:
    """When a file of a directory was last changed, in nanoseconds."""
    with os.scandir(path) as files:
        return max((each.stat().st_mtime_ns for each in files if os.path.exists(each)), default=0)


def twin_title(name: str) -> str:
    """What people call a twin or an encoding: `shaw-seed2` is "relative keys, seed 2"."""
    first, seed, number = name.partition("-seed")
    title = ENCODINGS[first].called if first in ENCODINGS else first
    title = "sinusoidal (post-norm)" if first == "postnorm" else title
    return f"{title}, seed {number}" if seed else title
