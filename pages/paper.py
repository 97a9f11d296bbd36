"""The paper: each of its equations, figures and tables, and the live number or picture here."""

from __future__ import annotations

from explorer.app.views import paper

paper.show()
