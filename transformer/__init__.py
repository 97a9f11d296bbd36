"""The Transformer of "Attention Is All You Need", with every attention head open to inspection."""
