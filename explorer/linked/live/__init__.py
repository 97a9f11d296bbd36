"""Page in which a model runs in its reader's browser."""
