"""Commands about how models were trained."""
