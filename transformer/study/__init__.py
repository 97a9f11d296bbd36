"""Many sentences, many models: statistics, roles, relations, twins."""
