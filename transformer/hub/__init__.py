"""Models by name: found, fetched, checked, published."""
