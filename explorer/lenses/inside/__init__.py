"""Views of one head or layer: its arithmetic, parts, spread, the logit lens."""
