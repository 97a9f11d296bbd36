"""The page Heads over many sentences."""
