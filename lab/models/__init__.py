"""Everything that describes a bundled model, measured again and written beside it."""
