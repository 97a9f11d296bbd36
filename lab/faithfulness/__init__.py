"""Faithfulness of measures of source tokens: deletion, insertion, and random weights."""
