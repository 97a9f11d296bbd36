"""Circuits of heads: what a head's matrices do to tokens."""
