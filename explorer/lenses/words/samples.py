"""The bundled sentence pairs, and links made by hand for some of them, by the languages of a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from explorer.lenses.words.languages import languages_of

FOLDER = Path(__file__).resolve().parents[3] / "assets" / "sample"


@dataclass(frozen=True)
class Sample:
    """The files of two languages, in a folder of samples."""

    data: str  # pairs
    alignments: str  # links made by hand for other pairs


USUAL = Sample("tatoeba-en-de.tsv.gz", "alignments.tsv")
SAMPLES = {("en", "de"): USUAL, ("en", "pt"): Sample("tatoeba-en-pt.tsv.gz", "alignments-en-pt.tsv")}


def sample_of(model: Path | None) -> Sample:
    """The sample of a model's languages; that of English and German if its card names no others."""
    return USUAL if model is None else SAMPLES.get(languages_of(model) or ("", ""), USUAL)
