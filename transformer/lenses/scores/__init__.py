"""Scores of a model: perplexity, its n-gram yardstick, intervals by resampling."""
