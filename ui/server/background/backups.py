"""Effects of switching pairs of heads off; visitors who ask for the same measurement share it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import streamlit as st

from lab.backups.backup_heads import BackupHeads, backup_heads
from lab.backups.pair_effects import PairEffects, effects_of, pair_effects
from transformer import Translator
from transformer.model.sites import AttentionKind
from ui.server import catalogue, measured
from ui.server.background import surveys
from ui.server.background.run import Run, turns
from ui.server.stores import Recent

MOST_SENTENCES = 60
"""Sentences of the sample that are measured."""
KEPT = 12
"""Most measurements that are kept."""


@st.cache_resource(show_spinner=False)
def _runs() -> Recent[Run[PairEffects]]:
    return Recent(KEPT)


def shipped(model: str, kind: str) -> PairEffects | None:
    """The measurement that came with a model; None if there is none for these weights."""
    with suppress(KeyError, OSError, ValueError):
        return measured.beside(model, effects_of).get(AttentionKind(kind))
    return None


def run_of(
    model: str,  # the name of the model
    kind: str,  # encoder, decoder or cross
    language: str | None,  # the target language of a model that must be told one
) -> Run[PairEffects]:
    """The measurement of a kind on the sample; new if nobody has asked for it yet.

    Raises:
        ValueError: There is no model of that name.
    """
    translator = catalogue.translator(model)
    texts = tuple(
        catalogue.addressed(model, line.source, language)
        for line in surveys.sample_of(model)[:MOST_SENTENCES]
    )
    key = (model, id(translator), kind, texts)
    return _runs().get(key, lambda: Run(BackupWork(translator, texts, kind), turns()))


class BackupWork:
    """The measurement of one kind as work for a `Run`."""

    name = "measurement"

    def __init__(
        self,
        translator: Translator,  # the model
        texts: Sequence[str],  # the sentences
        kind: str,  # encoder, decoder or cross
    ) -> None:
        self._translator, self._texts, self._kind = translator, tuple(texts), kind
        self._by = "zero" if translator.means is None else "mean"
        self._found: BackupHeads | None = None
        self.total = len(self._texts)

    def run(self) -> Iterator[int]:
        """Measures one sentence after the other."""
        found = backup_heads(self._translator, self._texts, self._kind, self._by)
        for number, self._found in enumerate(found, start=1):
            yield number

    def result(self) -> PairEffects | None:
        """The pairs over the sentences so far."""
        found = self._found
        return None if found is None or not len(found.effects) else pair_effects(found)
