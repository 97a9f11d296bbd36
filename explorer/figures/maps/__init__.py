"""Everything drawn from one head or several."""
