"""Strips, cursor, maps and bars that move together: what the scripts in `linked_view` are sent,
and answer."""
