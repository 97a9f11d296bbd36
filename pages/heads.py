"""Heads over many sentences: statistics, roles, examples, and the linguistic relations that heads follow."""

from __future__ import annotations

from ui import heads_view

heads_view.show()
