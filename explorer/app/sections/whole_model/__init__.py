"""The page Anatomy: the running model as a diagram, one block, the stream, and the logit lens."""
