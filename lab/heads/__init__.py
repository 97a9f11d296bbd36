"""Statistics and roles of every head, of one sentence and over many."""
