"""The studies of this server: documents that were shipped, or stand beside a model."""

from __future__ import annotations

from inspect import Parameter
from pathlib import Path
from typing import Any

from lab.study import FOLDER, documents, read
from lab.twins.titles import title
from ui.server import catalogue, models
from ui.server.measured import MEASURED
from ui.server.stores import kept, once


def known() -> dict[str, Path]:
    """The documents by name: `twins`, or `en-pt/importance` beside a model."""

    def look() -> dict[str, Path]:
        found = {path.stem: path for path in documents([catalogue.ROOT / "assets" / FOLDER])}
        for model, directory in (catalogue.available() | catalogue.language_models()).items():
            found |= {f"{model}/{path.stem}": path for path in documents([directory / FOLDER])}
        return found

    return once(known, look)


def question(name: str) -> str:
    """The question of a document; one beside a model calls the model as the list of models does."""
    asked: str = study(known()[name])["study"].question
    model, _, _ = name.rpartition("/")
    if not model:
        return asked
    folder, _, own = model.rpartition("/")
    called = models.handle(model).title
    if folder == catalogue.TWINS:
        called = called.replace(own, title(own))
    return asked.replace(f"“{own}”", f"“{called}”")


def missing(name: str) -> str:
    """The command that measures a study of a model which nobody has measured; empty if there is none such."""
    model, _, study = name.rpartition("/")
    if not models.exists(model):
        return ""
    models.loading().wait()
    from lab.studies import studies  # loads PyTorch

    directory = models.handle(model).path
    place = directory.relative_to(catalogue.ROOT) if directory.is_relative_to(catalogue.ROOT) else directory
    for each in studies():
        if each.beside and study in each.studies:
            options = (
                name
                for name, (_, usual) in each.parameters.items()
                if usual is Parameter.empty and name != "model"
            )
            files = "".join(f" --{name} FILE" for name in options)
            return f"python -m lab {each.name} --model {place}{files}"
    return ""


def study(path: Path) -> dict[str, Any]:
    """The document in a file.

    Raises:
        CheckpointError: the file is damaged.
    """
    found: dict[str, Any] = kept(MEASURED).get((str(path), path.stat().st_mtime_ns), lambda: read(path))
    return found
