"""The linked view of a run without a server: what it is sent (`linked.view`)."""
