"""How a model's training went, from its log."""
