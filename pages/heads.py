"""Heads over many sentences: statistics, roles, examples, and the linguistic relations that heads follow."""

from __future__ import annotations

from ui.views.heads import page

page.show()
