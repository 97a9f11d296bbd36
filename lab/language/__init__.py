"""Knowledge of a causal language model: induction, words."""
