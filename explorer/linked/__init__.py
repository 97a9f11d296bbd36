"""The linked view of a run without a server: as one HTML file, and in a notebook."""
