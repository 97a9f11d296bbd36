"""The data on which a model is measured, by the languages between which it translates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from transformer.storage.description import languages_of

OWN_GOLD = "own sample"
"""The name of the links made by hand in the folder of samples."""


@dataclass(frozen=True)
class Test:
    """A file of pairs on which every model of two languages is scored."""

    name: str  # its name in the tables
    data: str  # the file, relative to the folder of corpora
    dataset: str  # its name in the header of a card; empty if it does not stand there
    type: str  # the short name of that data set on the Hub
    beam: bool = False  # whether it is translated with a beam as well
    chosen: int = 0  # pairs, by the hash of their sources, that were used for choices: they are left out


@dataclass(frozen=True)
class LanguageData:
    """Files of two languages: in the folder of corpora, but for those of the sample."""

    sample: str  # pairs of the sample
    own_gold: str  # links made by hand for pairs of the sample
    gold: tuple[str, str]  # name and file of links made by others
    valid: str  # pairs whose heads are measured; a file of the sample if the corpora have none
    doubt: tuple[str, ...]  # pairs by which a doubt is chosen; none if none tells bad translations
    doubted: tuple[str, ...]  # pairs on which it is tried
    judged: tuple[Path, ...]  # translations judged by hand
    tests: tuple[Test, ...]  # what scores are measured on


TATOEBA = "Tatoeba (ManyThings.org edition of 2018-05-13), held-out test"
DATA = {
    ("en", "de"): LanguageData(
        sample="tatoeba-en-de.tsv.gz",
        own_gold="alignments.tsv",
        gold=("Europarl", "alignments/europarl-en-de.tsv.gz"),
        valid="tatoeba-en-de/valid.tsv.gz",
        doubt=("tatoeba-en-de/valid.tsv.gz", "extra-train/news.en-de.tsv.gz"),
        doubted=("tatoeba-en-de/test.tsv.gz", "extra-tests/newstest2014.en-de.tsv.gz"),
        judged=(Path("tests", "blind", "judged.tsv"),),
        tests=(
            Test("Tatoeba test", "tatoeba-en-de/test.tsv.gz", TATOEBA, "tatoeba", beam=True),
            Test("Tatoeba validation", "tatoeba-en-de/valid.tsv.gz", "", "tatoeba"),
            Test(
                "FLORES-200 devtest",
                "extra-tests/flores200-devtest.en-de.tsv.gz",
                "FLORES-200 devtest",
                "flores_200",
                beam=True,
            ),
            Test("newstest2014", "extra-tests/newstest2014.en-de.tsv.gz", "newstest2014", "wmt14"),
            Test("PUD", "extra-tests/pud.en-de.tsv.gz", "Parallel Universal Dependencies (PUD)", "pud"),
        ),
    ),
    ("en", "pt"): LanguageData(
        sample="tatoeba-en-pt.tsv.gz",
        own_gold="alignments-en-pt.tsv",
        gold=("XL-WA", "en-pt/xl-wa-test.en-pt.align.tsv.gz"),
        valid="",
        doubt=(),
        doubted=(),
        judged=(Path("tests", "blind", "judged-en-pt.tsv"), Path("tests", "blind", "pasted-en-pt.tsv")),
        tests=(
            Test(
                "Tatoeba, pairs not used for choices",
                "en-pt/tatoeba-test-v2021-08-07-half.en-pt.tsv.gz",
                "Tatoeba test v2021-08-07, pairs not used for choices",
                "tatoeba",
                chosen=1500,
            ),
            Test(
                "FLORES-200 devtest",
                "en-pt/flores200-devtest.en-pt.tsv.gz",
                "FLORES-200 devtest",
                "flores_200",
            ),
            Test("TICO-19, medical", "en-pt/tico19-test.en-pt_BR.tsv.gz", "TICO-19 test", "tico19"),
        ),
    ),
}
"""Data that models are measured on, by the codes of their languages."""


USUAL = DATA["en", "de"]


def data_of(model: Path) -> LanguageData:
    """The data of a model's languages; those of English and German if its card names no others."""
    return DATA.get(languages_of(model) or ("", ""), USUAL)
