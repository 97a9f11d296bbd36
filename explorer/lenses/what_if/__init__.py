"""What else could have happened: other computations on a head, changed runs and what their changes
did."""
