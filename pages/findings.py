"""Findings: what was measured over many sentences and models."""

from __future__ import annotations

from explorer.app.views.findings import page

page.show()
