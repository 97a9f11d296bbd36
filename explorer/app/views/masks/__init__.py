"""The page Masks: a head's scores, mask and weights; and padding, on the encoder's page."""
