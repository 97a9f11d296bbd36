"""Commands that ask one question of one run, or of a model: `python -m explorer explain` and `align`."""
