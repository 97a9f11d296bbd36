"""The model of the paper: everything that runs inside ``forward``."""
