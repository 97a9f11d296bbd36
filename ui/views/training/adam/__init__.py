"""Adam on one weight of a real run."""
