"""Text in, run out: translating with an encoder-decoder, generating with a language model."""
