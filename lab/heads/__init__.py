"""Statistics and roles of every head over many sentences."""
