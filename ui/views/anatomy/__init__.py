"""The page Anatomy."""
