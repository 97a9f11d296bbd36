"""Commands about language models: train, generate, measure."""
