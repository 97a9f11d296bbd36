"""Toy tasks whose data the package makes itself: small enough to learn in a minute or two."""
