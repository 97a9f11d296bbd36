"""Glossary: the words of this field, and where to see what they mean."""

from __future__ import annotations

from explorer.app.views import glossary

glossary.show()
