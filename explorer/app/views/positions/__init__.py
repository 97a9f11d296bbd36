"""The page Positions: encodings compared, in numbers, and by models that differ in nothing else (twins)."""
