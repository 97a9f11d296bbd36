"""Strips, cursor, maps and bars that move together: what `static/linked_view-7/` is sent, and
answers."""
