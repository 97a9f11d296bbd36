"""Which grammatical relations, antecedents and meanings heads follow."""
