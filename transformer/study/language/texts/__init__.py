"""Making plain texts to learn from: parts held out, near duplicates left out, sentences joined."""
