"""The section "train here": a small model, trained while the visitors watch."""
