"""The ready experiments: questions to a model that can be asked again."""
