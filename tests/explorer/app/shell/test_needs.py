from __future__ import annotations

from explorer.app.server import models
from explorer.app.shell.models.needs import PAGES, sentence


def test_a_sentence_names_what_is_missing_what_is_there_and_what_to_do():
    told = sentence(models.find("recurrent/dot"), ["encoder", "decoder"])
    assert "encoder self-attention and masked decoder self-attention, which recurrent/dot" in told
    assert "its only attention is cross-attention" in told
    assert "Choose another model" in told


def test_every_kind_has_its_page():
    assert set(PAGES) == {"encoder", "decoder", "cross"}
