"""The page What if: ready experiments, changes of one's own, and two runs beside one another."""
