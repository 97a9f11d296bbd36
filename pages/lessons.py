"""Lessons: a path from a first map to what a head does, and how one knows."""

from __future__ import annotations

from explorer.app.views.lessons import page

page.show()
