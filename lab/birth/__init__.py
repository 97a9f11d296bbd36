"""Birth of heads, by the snapshots of training runs."""
