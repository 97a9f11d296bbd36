"""The old address of the page The whole model."""

from __future__ import annotations

from ui.address import session

session.renamed("anatomy")
