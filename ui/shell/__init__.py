"""How every page opens: frame, menu, model, sentence."""
