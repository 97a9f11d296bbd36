"""T5 and its kin: T5 1.0 and 1.1, FLAN-T5, mT5, MADLAD."""
