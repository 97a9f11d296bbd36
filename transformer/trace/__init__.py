"""What was recorded of a run, one head of it, and the proof."""
