"""What a visitor sees, as one value, and its address."""
