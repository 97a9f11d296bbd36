"""Files of texts and links for training: plain, joined, without near duplicates."""
