"""The page Recurrent: translation by recurrent networks with attention, beside a Transformer."""
