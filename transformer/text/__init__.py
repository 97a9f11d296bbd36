"""Strings: vocabularies, words, files of sentence pairs."""
