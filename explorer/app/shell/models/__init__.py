"""The choice of a model: those on this machine, those on the Hub, and what a model lacks for a page."""
