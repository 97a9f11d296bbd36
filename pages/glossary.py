"""Glossary: the words of this field, and where to see what they mean."""

from __future__ import annotations

from ui.views import glossary

glossary.show()
