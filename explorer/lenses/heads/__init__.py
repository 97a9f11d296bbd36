"""Roles of heads: what each does over many sentences, by name."""
