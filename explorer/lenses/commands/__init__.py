"""Commands that measure the heads of a model: `python -m explorer align` and `survey`."""
