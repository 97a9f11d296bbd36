"""Commands that ask one question of one run, or of a model: `python -m lenses explain` and `align`."""
