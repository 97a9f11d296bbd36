"""The linked view on a page: explorer, display, export."""
