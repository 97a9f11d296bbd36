"""Sections that are gone: an old address opens their page, and says in one sentence what answers now."""

from __future__ import annotations

GONE = {
    "relations": "Which grammatical relations a head follows is no longer measured here: roles, under "
    "“statistics”, say what each head looks at.",
    "backup": "Pairs of backup heads are no longer measured here: switch two heads off under “Your "
    "changes”, and compare with either alone.",
    "dropout": "Maps under dropout are no longer drawn: in training, dropout sets random numbers of what "
    "each sub-layer adds to zero and scales up the rest; everywhere else, nothing is dropped.",
    "drafts": "Drafts from fewer layers are no longer shown: on the page “The whole model”, the logit lens "
    "reads what the decoder would write after each layer.",
}
"""Sentences by the value of ``view`` in an old address."""
