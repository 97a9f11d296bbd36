"""The page of lessons: the path through them, and a student's progress as a file."""
