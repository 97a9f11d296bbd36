"""`python -m lab documents`: writes the documents of all studies again from what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from lab.measurement import Folder, Measurement, command
from lab.studies import studies
from lab.study import FOLDER, write
from transformer.storage.files import read_json

MODELS = Path("assets", "models")


def measured(each: Measurement, models: Path = MODELS) -> Iterator[Path]:
    """The files that a measurement has written, each once."""
    if each.beside:
        yield from sorted(path for path in models.rglob(each.file) if path.parent.name != FOLDER)
    elif each.in_folder:
        yield from (
            path for path in models.rglob(each.file) if f" {each.name} " in read_json(path)["command"]
        )
    elif each.file and Path(each.file).is_file():
        yield Path(each.file)


@command()
def documents(models: Annotated[Folder, "models, with what was measured beside them"] = MODELS) -> int:
    """Writes the documents of all studies again, from data that were measured before."""
    for each in studies():
        for data in measured(each, models):
            found = read_json(data)
            for name, tell in each.studies.items() if each.complete(found) else ():
                print(f"Wrote {write(name, tell(found), found, data, each.shipped(data))}.")
    return 0
