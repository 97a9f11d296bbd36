"""A training run as files: its state, its log, its snapshots, and how it was started."""
