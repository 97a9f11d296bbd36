"""Views of a run by words: reading, alignment, what tells most, claims."""
