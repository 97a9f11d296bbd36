"""Whether a visitor's text is like the texts that the model was trained on."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from transformer import Translation
from transformer.hub.settings import Hub, HubError
from transformer.lenses.familiarity import Measure, Traits, read_measure, traits_of
from ui.server import catalogue, hub_models
from ui.server.runs import Asked
from ui.server.stores import Recent


@dataclass(frozen=True)
class Unfamiliar:
    """A text that is unlike the training texts.

    Attributes:
        traits: what was measured on it.
        measure: how the model judges.
    """

    traits: Traits
    measure: Measure

    @property
    def reason(self) -> str:
        """The name of the trait that speaks most against the text."""
        return self.measure.reason(self.traits)


@st.cache_resource(show_spinner=False)
def _judged() -> Recent[Unfamiliar | None]:
    return Recent(256)


def judge(asked: Asked, translation: Translation) -> Unfamiliar | None:
    """What speaks against a text; None if nothing does, or if the model has no measure.

    Raises:
        ValueError: the model's file is damaged.
    """
    if not catalogue.has_model(asked.model):
        return None
    model = catalogue.translator(asked.model)
    return _judged().get((asked.model, id(model), asked.text), lambda: _judge(asked, translation))


def _judge(asked: Asked, translation: Translation) -> Unfamiliar | None:
    measure = read_measure(catalogue.directory(asked.model))
    if measure is None:
        return None
    model, log_probs = catalogue.translator(asked.model), translation.log_probs
    if translation.method != "greedy":
        log_probs = model.translate(asked.text, beam_size=1, capture=False).log_probs
    traits = traits_of(model, asked.text, log_probs)
    return Unfamiliar(traits, measure) if measure.is_unlike(traits) else None


def is_here(name: str) -> bool:
    """Whether a model can be opened without a download."""
    return name in catalogue.available()


def may_be_fetched(name: str) -> bool:
    """Whether this installation may fetch a model from the Hub."""
    if hub_models.closed() is not None:
        return False
    try:
        Hub.from_environment().check_allowed(name)
    except HubError:
        return False
    return True
