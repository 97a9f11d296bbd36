"""Birth of a head: a sentence through the snapshots of a run, and when heads appear."""
