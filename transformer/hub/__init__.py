"""Finds, downloads and checks models by their names on the Hub."""
