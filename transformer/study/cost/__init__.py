"""What layers cost: Table 1 of the paper, and times and memory measured on this machine."""
