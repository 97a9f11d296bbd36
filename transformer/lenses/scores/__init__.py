"""How well a model does: perplexity, its n-gram yardstick, intervals by resampling."""
