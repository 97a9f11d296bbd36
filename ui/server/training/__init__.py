"""Training for visitors: runs with snapshots, and models that are measured or trained."""
