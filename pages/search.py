"""The old address of the page Beam search."""

from __future__ import annotations

from ui.address import session

session.renamed("search")
