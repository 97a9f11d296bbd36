"""Text: vocabularies, words, and files of sentence pairs."""
