"""What ships with the recurrent twins: what was measured on them, and how soft and hard attention learn."""
