"""Sections that are gone: an old address opens their page, and says in one sentence what answers now."""

from __future__ import annotations

GONE = {
    "relations": "Which grammatical relations a head follows is no longer measured here: roles, under "
    "“statistics”, say what each head looks at.",
}
"""Sentences by the value of ``view`` in an old address."""
