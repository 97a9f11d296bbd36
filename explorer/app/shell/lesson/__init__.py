"""A lesson on the pages that it shows: the strip at their top."""
