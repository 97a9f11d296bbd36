"""Knowledge of a causal language model: induction, agreement, words."""
