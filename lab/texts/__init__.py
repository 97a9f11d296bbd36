"""Files of texts for training: plain, joined, without near duplicates."""
