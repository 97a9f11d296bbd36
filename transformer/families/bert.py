"""BERT and what is built like it: MiniLM and other encoders of sentences, and ELECTRA.

Post-norm encoders with learned positions, and vectors for the first and the second text of a pair.
"""

from pathlib import Path

from transformer.config import EncoderConfig
from transformer.families.alone import AS_OURS, Source
from transformer.families.encoder import (
    EncoderFamily,
    Head,
    bert_entries,
    bert_sources,
    encoder_config,
    refuse,
    unread,
)
from transformer.families.family import Json
from transformer.storage.files import CheckpointError


def config(values: Json, path: Path) -> EncoderConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is unsupported."""
    refuse(values, {}, path)
    return encoder_config(bert_entries(values, path), path)


def electra_config(values: Json, path: Path) -> EncoderConfig:
    """As ``config``; CheckpointError also for embeddings of another width, and for another
    activation than that of its head."""
    refuse(values, {"hidden_act": "gelu"}, path)
    width = values.get("embedding_size", 128)
    if width != values.get("hidden_size"):
        raise CheckpointError(
            f"{path} says embedding_size = {width!r:.80}; only ELECTRA models whose embeddings are "
            "as wide as their layers are supported."
        )
    return config(values, path)


def sources(config: EncoderConfig) -> dict[str, Source]:
    """Our name of every weight, and where a file holds it."""
    return bert_sources(config, AS_OURS)


BERT = EncoderFamily(
    name="BERT",
    types=("bert",),
    config=config,
    sources=sources,
    prefix="bert.",
    tokenizers=("BertTokenizer",),
    unread=unread(r"cls\.seq_relationship\."),
    head=Head(
        linear="cls.predictions.transform.dense",
        norm="cls.predictions.transform.LayerNorm",
        output="cls.predictions.decoder",
        bias="cls.predictions.bias",
    ),
)
ELECTRA = EncoderFamily(
    name="ELECTRA",
    types=("electra",),
    config=electra_config,
    sources=sources,
    prefix="electra.",
    tokenizers=("ElectraTokenizer", "BertTokenizer"),
    unread=unread(),
    head=Head(
        linear="generator_predictions.dense",
        norm="generator_predictions.LayerNorm",
        output="generator_lm_head",
    ),
)
