"""Firefox's translation models: Marian's binary format in 8 bits, which Bergamot uses too."""
