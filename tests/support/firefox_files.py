"""Writes small models in Firefox's format, as ``transformer/families/firefox`` reads them."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import sentencepiece
import torch

from transformer.families.firefox.config import SETTINGS, TABLES
from transformer.families.firefox.items import FLOAT32, INT8, TEXT, VERSION
from transformer.families.firefox.model import weight_names
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer

TEXT_TO_LEARN = [
    "the old house is green and the garden behind it is small",
    "a casa velha é verde e o jardim atrás dela é pequeno",
    "we often see the quick brown fox jump over lazy dogs",
    "nós vemos muitas vezes a raposa rápida saltar sobre cães",
] * 20
PIECES = 60
CONFIG = TransformerConfig(
    vocab_size=PIECES,
    d_model=16,
    d_ff=24,
    n_heads=2,
    dropout=0.0,
    n_encoder_layers=3,
    n_decoder_layers=2,
    decoder_unit="ssru",
    norm_epsilon=1e-6,
    sine_layout="inclusive",
    output_bias=True,
    pad_id=PIECES,
    bos_id=PIECES,
    eos_id=0,
    unk_id=1,
)
Content = list[tuple[str, int, tuple[int, ...], bytes]]
"""Name, type, shape and bytes of each item."""


def vocabulary(pieces: int = PIECES, eos_id: int = 0) -> bytes:
    """A vocabulary that begins with ``</s>`` and ``<unk>`` and has no other special piece."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT_TO_LEARN),
        model_writer=written,
        vocab_size=pieces,
        eos_id=eos_id,
        unk_id=1,
        pad_id=-1,
        bos_id=-1,
        minloglevel=2,
    )
    return written.getvalue()


def settings(config: TransformerConfig = CONFIG) -> str:
    """The text of the sizes inside a file."""
    return (
        f"dim-emb: {config.d_model}\ntransformer-dim-ffn: {config.d_ff}\n"
        f"transformer-heads: {config.n_heads}\n"
        f"enc-depth: {config.n_encoder_layers}\ndec-depth: {config.n_decoder_layers}\ndec-cell: ssru\n"
        'type: transformer\ntransformer-decoder-autoreg: rnn\ntransformer-preprocess: ""\n'
        "transformer-postprocess: dan\ntransformer-ffn-activation: relu\ntied-embeddings-all: true\n"
    )


def content(model: Transformer, *, eight_bits: bool = True) -> Content:
    """A model's items; its matrices become what 8 bits can hold, in place."""
    found: Content = []
    state = model.state_dict()
    for ours, theirs in sorted(weight_names(model.config).items(), key=lambda names: names[1]):
        weight = state[ours]
        if weight.dim() == 1:
            found.append((theirs, FLOAT32, (1, len(weight)), weight.numpy().tobytes()))
            continue
        shape = tuple(weight.shape) if theirs in TABLES else tuple(weight.shape)[::-1]
        if not eight_bits:
            stored = weight if theirs in TABLES else weight.t()
            found.append((theirs, FLOAT32, shape, stored.contiguous().numpy().tobytes()))
            continue
        multiplier = np.float32(127) / weight.abs().max().numpy()
        whole = np.rint(weight.numpy() * multiplier).astype(np.int8)
        weight.copy_(torch.from_numpy(whole.astype(np.float32) / multiplier))
        found.append((theirs, INT8, shape, whole.tobytes() + multiplier.tobytes() + bytes(252)))
    text = settings(model.config).encode() + b"\0"
    return [*found, (SETTINGS, TEXT, (len(text),), text)]


def packed(items: Content, version: int = VERSION, padding: int = 40) -> bytes:
    """The bytes of a file with these items."""
    heads = [
        struct.pack("<4Q", len(name.encode()) + 1, kind, len(shape), len(data))
        for name, kind, shape, data in items
    ]
    names = [name.encode() + b"\0" for name, *_ in items]
    shapes = [struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items]
    parts = [struct.pack("<2Q", version, len(items)), *heads, *names, *shapes]
    parts += [struct.pack("<Q", padding), bytes(padding), *(data for *_, data in items)]
    return b"".join(parts)


def random_model(config: TransformerConfig = CONFIG, seed: int = 0) -> Transformer:
    """A model whose biases and LayerNorms are random too."""
    torch.manual_seed(seed)
    model = Transformer(config).eval().requires_grad_(False)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            parameter.add_(0.3 * torch.randn(parameter.shape))
        elif "norm" not in name:
            parameter.mul_(1.5)
    return model


def write_firefox(directory: Path, model: Transformer, **changes: bool) -> Path:
    """A folder as Firefox downloads it."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "model.enpt.intgemm.alphas.bin").write_bytes(packed(content(model, **changes)))
    sizes = {"src": model.config.vocab_size, "trg": model.config.n_target_pieces}
    for side, pieces in ({"": PIECES} if model.config.shared_embeddings else sizes).items():
        (directory / f"{side}vocab.enpt.spm").write_bytes(vocabulary(pieces))
    return directory
