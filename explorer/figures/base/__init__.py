"""Parts that all figures share: labels, hues, frames, captions, bars, strips."""
