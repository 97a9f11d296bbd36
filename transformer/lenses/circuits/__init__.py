"""Circuits of heads: what a head's keys were written by, what its matrices do to tokens, one path patched."""
