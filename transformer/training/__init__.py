"""From sentence pairs to weights."""
