"""Commands that measure recurrent translation."""
