"""What a hosted instance, where anybody may come, closes, bounds, counts and logs."""
