"""Marian checkpoints, the family of OPUS-MT."""
