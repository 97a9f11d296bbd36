"""The commands of `python -m explorer`: a file for each."""
