"""Recurrent twins beside a Transformer: how well each aligns, and how fast each trains and writes."""
