"""The page Inside a head: one row of one head step by step, and the layer around it as a chain."""
