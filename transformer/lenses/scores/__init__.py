"""Scores of a model: perplexity, intervals by resampling."""
