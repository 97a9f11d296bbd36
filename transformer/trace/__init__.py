"""Recordings of a run, views of single heads, and the checks that prove them."""
