"""Ready experiments: questions that anyone can put to a model, and what a model answers."""
