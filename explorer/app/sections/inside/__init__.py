"""The page Inside a head: one query of one head, step by step, from the residual stream and back
into it."""
