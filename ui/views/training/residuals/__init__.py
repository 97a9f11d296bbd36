"""Gradients by layer, with residual connections and LayerNorm and without."""
