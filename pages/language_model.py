"""Page: a causal language model continues a text, and what it reads at every step."""

from __future__ import annotations

from explorer.app.views.language_model import page

page.show()
