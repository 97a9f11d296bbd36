"""Marian checkpoints: the family that OPUS-MT models belong to."""
