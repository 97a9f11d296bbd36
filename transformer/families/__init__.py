"""Other people's checkpoints, one folder each."""
