"""The pages of one attention each: encoder, decoder, cross-attention."""
