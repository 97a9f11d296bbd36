"""From a model to tokens: steps, search, beam, sampling, replay."""
