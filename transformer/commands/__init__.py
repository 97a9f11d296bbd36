"""The command line: one file per topic."""
