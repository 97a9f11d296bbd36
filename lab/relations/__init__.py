"""Grammatical relations, antecedents and meanings that heads follow."""
