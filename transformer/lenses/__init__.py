"""What one run shows: inside a head, parts, words, links."""
