"""The page Training: what a model is shown, what its loss is, and how fast it learns."""
