"""The sorts of change that a visitor can add: what each does, and its controls."""
