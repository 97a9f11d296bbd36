"""Whether measures of source tokens say what the model needs: deletion, insertion, and random weights."""
