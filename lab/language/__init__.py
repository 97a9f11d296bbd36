"""What a causal language model has learned: induction, agreement, words."""
