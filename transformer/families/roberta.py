"""RoBERTa and XLM-R: BERT with two ends between two texts, and a table of positions whose first two
rows no token has."""

from pathlib import Path

from transformer.config import EncoderConfig
from transformer.families.alone import Source, after_rows
from transformer.families.encoder import (
    EncoderFamily,
    Frame,
    Head,
    bert_entries,
    bert_sources,
    encoder_config,
    refuse,
    unread,
)
from transformer.families.family import Json

REQUIRED: dict[str, object] = {"pad_token_id": 1, "hidden_act": "gelu"}
"""Entries whose other values would mean other positions, or another activation than that of the
head."""
UNUSED_ROWS = 2
"""Positions begin one behind the id of padding, which is 1."""


def config(values: Json, path: Path) -> EncoderConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is unsupported."""
    refuse(values, REQUIRED, path)
    ours = bert_entries(values, path)
    if isinstance(ours["max_positions"], int):
        ours["max_positions"] -= UNUSED_ROWS
    return encoder_config(ours, path)


def sources(config: EncoderConfig) -> dict[str, Source]:
    """Our name of every weight, and where a file holds it."""
    return bert_sources(config, after_rows(UNUSED_ROWS))


ROBERTA = EncoderFamily(
    name="RoBERTa",
    types=("roberta", "xlm-roberta"),
    config=config,
    sources=sources,
    prefix="roberta.",
    unread=unread(),
    byte_level=True,
    head=Head(
        linear="lm_head.dense",
        norm="lm_head.layer_norm",
        output="lm_head.decoder",
        bias="lm_head.bias",
    ),
    frame=Frame(begin="<s>", end="</s>", n_separators=2, n_segments=1),
    placeless="<pad>",
    tokenizers=("RobertaTokenizer", "XLMRobertaTokenizer"),
)
