"""What visitors share about training: runs with snapshots."""
