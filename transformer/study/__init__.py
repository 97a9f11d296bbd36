"""Measurements over many sentences or models: statistics, roles, relations, twins."""
