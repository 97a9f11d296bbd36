"""Gradients of untrained models and of the bundled ones on the bundled sample, computed once."""

from __future__ import annotations

from functools import cache

from lab.studies.residuals import VOCABULARY, Gradients, Variant, at_initialisation, of_model
from lab.studies.residuals import sample_batch as batch_of
from lenses.what_if.untrained import fresh_model
from transformer.text.pairs import SentencePair, both_sides, read_pairs
from transformer.text.vocabulary import Tokenizer
from transformer.training.batches import Batch
from ui.address.session import FORMER
from ui.server import catalogue
from ui.server.stores import kept

SAMPLE = catalogue.ROOT / "assets" / "sample" / "tatoeba-en-de.tsv.gz"
MODELS = (FORMER, f"{catalogue.TWINS}/sinusoidal", f"{catalogue.TWINS}/postnorm")
"""The trained models that are compared, if they are here."""
SEED = 1
"""Seed of their untrained twins."""


@cache
def _pairs() -> list[SentencePair]:
    return read_pairs(SAMPLE)


@cache
def _batch() -> Batch:
    """The pairs in a small vocabulary of their own."""
    return batch_of(_pairs(), Tokenizer.train(both_sides(_pairs()), VOCABULARY))


def untrained(depth: int) -> dict[Variant, Gradients]:
    """The gradients of untrained models of some depth, by variant.

    Raises:
        ValueError: the sample is missing or damaged.
    """
    found: dict[Variant, Gradients] = kept("gradients").get(
        ("untrained", depth), lambda: at_initialisation(_batch(), VOCABULARY, depth)
    )
    return found


def trained() -> dict[str, tuple[Gradients, Gradients]]:
    """The gradients of the models that exist, by name: before training and after it.

    Raises:
        ValueError: the sample is missing or damaged, or a model is.
    """
    return {name: _of(name) for name in MODELS if catalogue.exists(name)}


def _of(name: str) -> tuple[Gradients, Gradients]:
    model = catalogue.translator(name)

    def make() -> tuple[Gradients, Gradients]:
        batch = batch_of(_pairs(), model.tokenizer)
        return of_model(fresh_model(model.config, SEED), batch), of_model(model.model, batch)

    found: tuple[Gradients, Gradients] = kept("gradients").get((name, id(model)), make)
    return found
