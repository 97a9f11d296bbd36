"""When heads appear, by the snapshots of training runs."""
