"""What else could have happened, and the difference."""
