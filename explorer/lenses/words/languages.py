"""The languages of a model by its card or its vocabulary, their names and sample pairs.

No PyTorch.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from transformer.storage.description import read_header

_LINES = Path(__file__).with_name("languages.txt").read_text(encoding="utf-8").splitlines()
LANGUAGES = {code: name for code, _, name in (line.partition(" ") for line in _LINES)}
"""English names of languages by their codes: ISO 639-1 where there is one, and ISO 639-3
(NLLB-200)."""
_SCRIPTS = {
    "Arab": "Arabic script",
    "Deva": "Devanagari",
    "Hans": "simplified",
    "Hant": "traditional",
    "Latn": "Latin script",
    "Tfng": "Tifinagh",
}
_TWICE = ("ace", "bjn", "kas", "knc", "taq", "zho")
"""Languages that NLLB-200 knows in two scripts."""


def language_name(piece: str) -> str:
    """The name of the language of a piece, such as `deu_Latn`, `__de__` or `<2de>`; its code if
    unknown."""
    code = piece.strip("<>_").removeprefix("2")
    language, _, script = code.partition("_")
    name = LANGUAGES.get(language, code)
    if language in _TWICE and script in _SCRIPTS:
        return f"{name} ({_SCRIPTS[script]})"
    return name


def languages_in_words(codes: Sequence[str]) -> str:
    """Two languages by the codes of a card, such as "English → German"; empty if it names more or
    fewer."""
    if len(codes) != 2:
        return ""
    return " → ".join(LANGUAGES.get(code, code) for code in codes)


FOLDER = Path(__file__).resolve().parents[3] / "assets" / "sample"


class Sample(NamedTuple):
    """The files of two languages, in a folder of samples."""

    data: str  # pairs
    alignments: str  # links made by hand for other pairs


USUAL = Sample("tatoeba-en-de.tsv.gz", "alignments.tsv")
SAMPLES: Mapping[tuple[str, ...], Sample] = {
    ("en", "de"): USUAL,
    ("en", "pt"): Sample("tatoeba-en-pt.tsv.gz", "alignments-en-pt.tsv"),
}


def sample_of(model: Path | None) -> Sample:
    """The sample of a model's languages; that of English and German if its card names no others."""
    return USUAL if model is None else SAMPLES.get(read_header(model).language, USUAL)
