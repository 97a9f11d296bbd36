"""Recurrent twins beside the Transformer: long sentences, alignment, speed."""
