"""Sections of the pages that are too long for one file: a folder for each page."""
