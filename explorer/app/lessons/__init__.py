"""Lessons: their files, their questions, and what a student has done."""
