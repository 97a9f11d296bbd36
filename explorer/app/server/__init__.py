"""All that visitors share: models, runs, caches."""
