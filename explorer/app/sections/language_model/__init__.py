"""The page of the causal language model: generation, surprisal, one prediction at every
position."""
