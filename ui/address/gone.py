"""Sections that are gone or have moved, by the `view` of their old addresses.

An address of one that is gone opens its page, and says in one sentence what answers now.
"""

from __future__ import annotations

RENAMED = {"anatomy": "whole_model", "search": "beam_search"}
"""Pages by their former names, whose scripts open them."""
MOVED = {
    "training/here": ("train_here", ""),
    "positions/results": ("findings", "positions"),
    "recurrent/long": ("findings", "recurrent-length"),
    "recurrent/speed": ("findings", "recurrent-speed"),
    "recurrent/hard": ("findings", "hard-attention"),
    "training/adam": ("findings", "adam"),
    "training/residuals": ("findings", "residuals"),
    "training/cost": ("findings", "cost"),
    "language_model/induction": ("findings", "{model}/induction"),
    "language_model/space": ("findings", "{model}/words"),
    "language_model/pretraining": ("findings", "pretraining"),
    "heads/importance": ("findings", "{model}/importance"),
    "explanation/faithful": ("findings", "{model}/faithfulness"),
}
"""Page and study by the page and view of an old address; `{model}` stands for the model of the address."""
MERGED = {"score": "why", "sources": "why"}
"""Sections by the `view` of old ones that became a part of them."""
GONE = {
    "relations": "Which grammatical relations a head follows is no longer measured here: roles, under "
    "“statistics”, say what each head looks at.",
    "backup": "Pairs of backup heads are no longer measured here: switch two heads off under “Your "
    "changes”, and compare with either alone.",
    "dropout": "Maps under dropout are no longer drawn: in training, dropout sets random numbers of what "
    "each sub-layer adds to zero and scales up the rest; everywhere else, nothing is dropped.",
    "drafts": "Drafts from fewer layers are no longer shown: on the page “The whole model”, the logit lens "
    "reads what the decoder would write after each layer.",
    "unit": "A recurrent unit and masked self-attention are no longer compared here: choose Firefox’s model, "
    "and the page “Decoder” shows what its unit remembers.",
    "agreement": "Minimal pairs and an n-gram model are no longer measured here: read one sentence after the "
    "other under “surprisal”, on the page “Language model”; the one with fewer bits is the more probable.",
    "cost": "What attention costs as texts get longer is no longer measured here: “What does a layer of each "
    "kind cost”, under “Findings”, shows Table 1 of the paper beside measured times.",
}
"""Sentences by the value of ``view`` in an old address."""
