"""The visitor's sentence with dropout on, computed once for each part of its maps."""

from __future__ import annotations

from lab.learning.flicker import Flicker, flicker
from transformer import Translation, Window
from transformer.model.sites import AttentionKind
from ui.server.catalogue import translator
from ui.server.stores import kept


def with_dropout(
    name: str,  # the model
    translation: Translation,  # gives source and target, which is forced
    kind: str,  # encoder, decoder or cross
    window: Window,  # the part of the maps
) -> Flicker:
    """The maps of one kind in several runs with dropout.

    Raises:
        NoModelError: the run was opened from a file.
    """
    model = translator(name)
    text, target = translation.source_text, translation.target_ids
    found: Flicker = kept("flickers").get(
        (name, text, target, kind, window, id(model)),
        lambda: flicker(model, text, target, AttentionKind(kind), window),
    )
    return found
