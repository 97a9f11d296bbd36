"""The measurements behind the shipped results: many sentences, many models."""
