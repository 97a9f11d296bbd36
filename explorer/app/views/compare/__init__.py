"""The page Compare: two maps, and the first minus the second."""
