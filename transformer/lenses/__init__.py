"""Views of one run: inside a head, parts of the model, words, alignment links."""
