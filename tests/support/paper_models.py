"""The sizes of table 3 of the paper."""

from transformer.config import TransformerConfig


def paper_base(vocab_size: int = 37_000) -> TransformerConfig:
    """The paper's base model (table 3, first row): 63.1 M parameters with 37,000 tied pieces."""
    return TransformerConfig(vocab_size=vocab_size)


def paper_big(vocab_size: int = 37_000) -> TransformerConfig:
    """The paper's big model (table 3, last row): 214.2 M parameters with 37,000 tied pieces."""
    return TransformerConfig(
        vocab_size=vocab_size, d_model=1024, d_ff=4096, n_heads=16, dropout=0.3
    )
