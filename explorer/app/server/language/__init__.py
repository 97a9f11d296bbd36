"""Language models on the server: opened so that the pages can ask them as they ask a translator."""
