"""Questions about a run whose answers are measured in it, never stored."""
