"""The page What if: change one thing in the running model, decode again, see what it did."""
