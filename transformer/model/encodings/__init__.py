"""Order of tokens in a model: tables and rotations of positions, and biases on scores."""
