"""A small model trained on this server: one run at a time, in a process of its own, within limits."""
