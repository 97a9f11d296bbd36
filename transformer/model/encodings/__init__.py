"""How a model knows the order of tokens: tables and rotations of positions, and biases on scores."""
