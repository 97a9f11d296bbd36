"""Links between the typed words of any sentence pair, read from one aligner of a model."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.lenses.words.alignment import Aligner, link_words, merge_words
from explorer.lenses.words.links import Links
from transformer.text.pairs import DataError
from transformer.text.words import Group
from transformer.translator import Translator


@dataclass(frozen=True)
class Linker:
    """A model and the aligner that reads its cross-attention."""

    translator: Translator  # the model
    aligner: Aligner  # its head, or the mean of several

    def links(self, source: str, target: str) -> Links:
        """Each target word's link to its strongest source word, the target forced; as ``typed_words``."""
        words, wanted = typed_words(self.translator, source, target)
        weights = self.aligner.weights(self.translator.force(_spaced(source), _spaced(target)))
        return link_words(merge_words(weights, wanted, words)[None])[0]


def typed_words(
    translator: Translator,  # the model
    source: str,  # words between spaces
    target: str,  # likewise
    place: str = "",  # file and line, for the error
) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
    """The pieces of each typed word of a pair; InputError for its length, DataError if one draws nothing."""
    words = translator.cut(_spaced(source)).groups(), translator.cut(_spaced(target), "target").groups()
    if tuple(map(len, words)) != (len(source.split()), len(target.split())):
        said = f"{place}: a" if place else "A"
        raise DataError(f"{said} word of this pair has no visible character; its links count it.")
    return words


def _spaced(text: str) -> str:
    """The words of a text between single spaces."""
    return " ".join(text.split())


def shipped_aligner(translator: Translator) -> Aligner:
    """The best aligner that the model's ``heads.json`` names; ValueError if it names none."""
    known = (translator.heads or {}).get("aligner")
    if known is None:
        raise ValueError(
            f"{translator.name} names no aligner; name a head, or measure them all with "
            "`python -m explorer survey --alignments FILE`."
        )
    return Aligner(tuple((layer, head) for layer, head in known["heads"]), known["rows"])
