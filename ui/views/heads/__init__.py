"""The page Heads over sentences."""
