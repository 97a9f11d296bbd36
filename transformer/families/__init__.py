"""Other people's checkpoints, one file each."""
