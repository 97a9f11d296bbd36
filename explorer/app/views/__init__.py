"""Contents of the pages: one folder a page."""
