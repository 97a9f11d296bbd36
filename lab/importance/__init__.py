"""How much a model's loss needs each of its heads."""
