"""The page Masks, and padding on the encoder's page."""
