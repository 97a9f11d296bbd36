"""The page Heads over sentences: roles and statistics of every head of a model."""
