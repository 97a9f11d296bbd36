"""The visitor's view of a page, as one value and as an address."""
