"""What a visitor sees, as one value and as an address."""
