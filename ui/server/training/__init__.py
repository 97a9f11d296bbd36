"""What visitors share about training: runs with snapshots, and models that are measured or trained."""
