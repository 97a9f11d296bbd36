"""The page Heads over sentences: roles, statistics and importance of every head of a model."""
