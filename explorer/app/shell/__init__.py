"""The opening of every page: frame, menu, model, sentence."""
