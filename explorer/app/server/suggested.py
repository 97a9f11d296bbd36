"""Well-known models of the families that open here, the smallest first; what the Hub offers is asked of it.

Parameters, licences and languages were written down by hand and not read from the Hub: the card that opens
with a model is what counts. A file of 32 bits has four bytes for each parameter.
"""

from typing import NamedTuple

from explorer.app.server import hub_models, memory

MOST = 5
"""Suggestions that are shown at most."""
_ROOM = 1.2
"""Memory that a model takes while it opens, as a share of its weights."""


class Suggested(NamedTuple):
    """A model on the Hub."""

    name: str
    millions: int  # of parameters
    licence: str
    does: str  # what it does, in which languages

    @property
    def nbytes(self) -> int:
        """Bytes of its weights, in 32 bits."""
        return 4_000_000 * self.millions

    @property
    def description(self) -> str:
        """Its sizes and its licence."""
        return f"{self.millions} million parameters, {self.nbytes / 1e9:.1f} GB · {self.licence}"


MODELS = (
    Suggested(
        "google-t5/t5-small", 61, "Apache 2.0", "does the task that the text names; English, German, French"
    ),
    Suggested("Helsinki-NLP/opus-mt-en-de", 74, "CC BY 4.0", "translates English into German"),
    Suggested("google/flan-t5-small", 77, "Apache 2.0", "follows a prompt, mostly in English"),
    Suggested("facebook/bart-base", 139, "Apache 2.0", "fills in and repairs English text"),
    Suggested("google/flan-t5-base", 248, "Apache 2.0", "follows a prompt, mostly in English"),
    Suggested("sshleifer/distilbart-cnn-12-6", 306, "Apache 2.0", "summarises English news"),
    Suggested("facebook/bart-large-cnn", 406, "MIT", "summarises English news"),
    Suggested("facebook/m2m100_418M", 484, "MIT", "translates between 100 languages"),
    Suggested("facebook/mbart-large-50-many-to-many-mmt", 611, "MIT", "translates between 50 languages"),
    Suggested(
        "facebook/nllb-200-distilled-600M",
        615,
        "CC BY-NC 4.0, not for commercial use",
        "translates between 200 languages",
    ),
)


def fitting() -> tuple[Suggested, ...]:
    """Those that may be opened here and fit the memory that is free; the largest ones if there are many."""
    free, limit = memory.available(), hub_models.most_bytes()
    fit = [each for each in MODELS if _ROOM * each.nbytes <= free and each.nbytes <= limit]
    allowed = [each for each in fit if hub_models.is_allowed(each.name)]
    return tuple(_spread(allowed))


def _spread(models: list[Suggested]) -> list[Suggested]:
    """At most ``MOST``, from the smallest to the largest."""
    if len(models) <= MOST:
        return models
    places = sorted({round(at * (len(models) - 1) / (MOST - 1)) for at in range(MOST)})
    return [models[at] for at in places]
