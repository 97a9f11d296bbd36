"""A model as files: directory, tensors, card."""
