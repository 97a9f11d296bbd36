"""Computations that the model did not do, and differences between maps."""
