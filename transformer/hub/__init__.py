"""Finds, downloads, checks and publishes models by their names on the Hub."""
