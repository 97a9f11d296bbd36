"""Models whose weights are set by hand, so that every attention weight is known before they run.

Each has one encoder and one decoder layer with two heads. A head is a ``Line``: row t attends to
key ``slope × t + offset``, limited to the keys that row t may see. The line is drawn with the
model's own sinusoids: a rotation turns PE(t) into PE(t + offset), a reflection into PE(offset - t)
(section 3.5). Cross-attention head 0 alone writes into the residual stream, so it also decides the
translation: ``copy``, ``shift`` and ``reverse`` really translate number words, and the source word
"stop" into ``</s>``.

    models = write_models(directory)                       # checkpoints that load_translator opens
    view = load_translator(models["shift"]).translate(CASES["shift"].sentence).head("cross", 0, 0)
    CASES["shift"].keys("cross", 0)                        # the key each row attends to: (1, 2, …)

In each case all tokens are distinct, source and target have different lengths, and no map equals
its transpose, so a figure with swapped axes, swapped heads or swapped sides shows other cells.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from transformer.config import TransformerConfig
from transformer.model import Transformer
from transformer.storage.directory import save_checkpoint
from transformer.text.tokenizer import BOS_ID, EOS_ID, Tokenizer
from transformer.text.words import BOS, EOS

ENGLISH = ("one", "two", "three", "four", "five", "six", "eight", "nine", "ten", "stop")
GERMAN = ("eins", "zwei", "drei", "vier", "fünf", "sechs", "acht", "neun", "zehn", EOS)
VOCAB_SIZE = 302
"""4 special pieces, 256 bytes, 23 characters, and the words: all that sentencepiece finds in
them."""

D_MODEL, N_HEADS = 128, 2
D_HEAD = D_MODEL // N_HEADS
FREQUENCIES = 6
"""How many of the fastest sinusoids place a line."""
IDENTITY, NULL = 84, 126
"""First of the dimensions that name a token, and one that is 0 everywhere: slow sines, below 0.01
here."""
IDENTITY_SIZE, SHARPNESS, WRITE, LOGIT = 4.0, 8.0, 8.0, 1.0
KNOWN = 0.99
"""Every known cell holds more than this."""


@dataclass(frozen=True)
class Line:
    """Row t attends to key ``slope × t + offset``; slope 1 is a rotation, -1 a reflection."""

    slope: int
    offset: int

    def key(self, row: int, visible: int) -> int:
        """The key that a row attends to among the first ``visible`` ones."""
        return min(max(self.slope * row + self.offset, 0), visible - 1)


@dataclass(frozen=True)
class Case:
    """A model, a sentence for it, and what must come out."""

    norm: str  # "pre" or "post"
    encoder: tuple[Line, Line]  # the line of each encoder head
    decoder: tuple[Line, Line]  # the line of each decoder head; no row sees a later key
    cross: tuple[Line, Line]  # the line of each cross-attention head
    sentence: str  # what to translate
    translation: str  # its translation
    source_tokens: tuple[str, ...]  # columns of cross-attention
    target_tokens: tuple[str, ...]  # what the rows of cross-attention predict

    @property
    def decoder_input_tokens(self) -> tuple[str, ...]:
        """What the rows of decoder self-attention and cross-attention read."""
        return BOS, *self.target_tokens[:-1]

    def keys(self, kind: str, head: int) -> tuple[int, ...]:
        """The key, from 0, that each row attends to in layer 0."""
        source = len(self.source_tokens)
        target = len(self.target_tokens)
        line = {"encoder": self.encoder, "decoder": self.decoder, "cross": self.cross}[kind][head]
        rows = source if kind == "encoder" else target
        return tuple(line.key(row, row + 1 if kind == "decoder" else source) for row in range(rows))

    def weights(self, kind: str, head: int) -> np.ndarray:
        """(queries, keys) the ideal map: 1 in the known cells, 0 elsewhere."""
        keys = self.keys(kind, head)
        columns = len(self.target_tokens if kind == "decoder" else self.source_tokens)
        return np.eye(columns, dtype=np.float32)[list(keys)]


CASES = {
    "copy": Case(
        norm="post",
        encoder=(Line(1, 1), Line(1, -1)),
        decoder=(Line(1, -1), Line(1, -2)),
        cross=(Line(1, 0), Line(-1, 6)),
        sentence="one two three four stop five six",
        translation="eins zwei drei vier",
        source_tokens=("▁one", "▁two", "▁three", "▁four", "▁stop", "▁five", "▁six", EOS),
        target_tokens=("▁eins", "▁zwei", "▁drei", "▁vier", EOS),
    ),
    "shift": Case(
        norm="pre",
        encoder=(Line(1, -1), Line(1, 1)),
        decoder=(Line(1, -2), Line(1, -1)),
        cross=(Line(1, 1), Line(1, 0)),
        sentence="ten nine eight six five four",
        translation="neun acht sechs fünf vier",
        source_tokens=("▁ten", "▁nine", "▁eight", "▁six", "▁five", "▁four", EOS),
        target_tokens=("▁neun", "▁acht", "▁sechs", "▁fünf", "▁vier", EOS),
    ),
    "reverse": Case(
        norm="post",
        encoder=(Line(1, 1), Line(1, -1)),
        decoder=(Line(1, -1), Line(1, -3)),
        cross=(Line(-1, 5), Line(1, 2)),
        sentence="stop one two three four five",
        translation="fünf vier drei zwei eins",
        source_tokens=("▁stop", "▁one", "▁two", "▁three", "▁four", "▁five", EOS),
        target_tokens=("▁fünf", "▁vier", "▁drei", "▁zwei", "▁eins", EOS),
    ),
}
"""The models by name, with the attention and the translation that their weights were set for."""


def write_models(directory: Path) -> dict[str, Path]:
    """Writes one checkpoint directory per case; ``load_translator`` opens them."""
    tokenizer = make_tokenizer()
    paths = {name: directory / name for name in CASES}
    for name, path in paths.items():
        model = make_model(CASES[name], tokenizer)
        card = (
            f"# {name}\n\nWeights set by hand for tests: {CASES[name].sentence!r} is known cell by "
            "cell.\n"
        )
        save_checkpoint(path, model.config, model.state_dict(), tokenizer, card=card)
    return paths


def make_tokenizer() -> Tokenizer:
    """A real sentencepiece vocabulary in which every number word is one piece."""
    words = [word for word in ENGLISH + GERMAN if word != EOS]
    return Tokenizer.train(
        [word + end for word in words for end in ("", "", "", ".", "!")] * 100, VOCAB_SIZE
    )


def make_model(case: Case, tokenizer: Tokenizer) -> Transformer:
    """The model of a case, in ``eval()``."""
    config = TransformerConfig(
        vocab_size=VOCAB_SIZE,
        d_model=D_MODEL,
        d_ff=8,
        n_heads=N_HEADS,
        n_encoder_layers=1,
        n_decoder_layers=1,
        dropout=0.0,
        norm=case.norm,
        tied_embeddings=False,
        max_positions=64,
    )
    model = Transformer(config).eval().requires_grad_(False)
    decoder = model.decoder.layers[0]
    for feed_forward in (model.encoder.layers[0].feed_forward, decoder.feed_forward):
        feed_forward.outer.weight.zero_()
    _set_attention(model.encoder.layers[0].self_attention, case.encoder)
    _set_attention(decoder.self_attention, case.decoder)
    _set_attention(decoder.cross_attention, case.cross)
    write = _identities().T.clamp(min=0.0)
    decoder.cross_attention.out_proj.weight[:, :D_HEAD] = WRITE * write
    _set_words(model, tokenizer)
    return model


def _set_attention(attention: torch.nn.Module, lines: tuple[Line, Line]) -> None:
    """Queries place the line, keys are the sinusoids themselves, values name the token; none is
    written."""
    keys = _difference_from_null(range(2 * FREQUENCIES))
    attention.q_proj.weight.copy_(
        torch.cat([SHARPNESS * math.sqrt(D_HEAD) * _turn(x) @ keys for x in lines])
    )
    attention.k_proj.weight.copy_(torch.cat([keys] * N_HEADS))
    attention.v_proj.weight.copy_(torch.cat([_identities()] * N_HEADS))
    attention.out_proj.weight.zero_()


def _turn(line: Line) -> Tensor:
    """(d_head, d_head): takes the sinusoids of position t to those of ``slope × t + offset``."""
    matrix = torch.zeros(D_HEAD, D_HEAD)
    for i in range(FREQUENCIES):
        angle = line.offset * 10_000 ** (-2 * i / D_MODEL)
        sine = math.sin(angle)
        cosine = math.cos(angle)
        # sin(ω(s·t + c)) = cos(ωc)·s·sin(ωt) + sin(ωc)·cos(ωt), and cos(ω(s·t + c)) likewise.
        block = torch.tensor([[line.slope * cosine, sine], [-line.slope * sine, cosine]])
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    return matrix


def _difference_from_null(dimensions: range) -> Tensor:
    """(d_head, d_model): reads dimensions less the null one, so that LayerNorm's mean cancels
    exactly."""
    matrix = torch.zeros(D_HEAD, D_MODEL)
    for row, dimension in enumerate(dimensions):
        matrix[row, dimension] = 1.0
    matrix[: len(dimensions), NULL] = -1.0
    return matrix


def _identities() -> Tensor:
    """(d_head, d_model): reads the dimensions that name tokens."""
    return _difference_from_null(range(IDENTITY, NULL, 2))


def _set_words(model: Transformer, tokenizer: Tokenizer) -> None:
    """Each word names itself in a dimension of its own; reading a source word predicts its
    translation."""
    source = [tokenizer.source.ids[f"▁{word}"] for word in ENGLISH] + [EOS_ID]
    target = [EOS_ID if word == EOS else tokenizer.source.ids[f"▁{word}"] for word in GERMAN] + [
        EOS_ID
    ]
    names = dict.fromkeys([*source, *target, BOS_ID])
    dimension = {token_id: IDENTITY + 2 * place for place, token_id in enumerate(names)}
    assert max(dimension.values()) < NULL
    model.embedding.weight.zero_()
    model.output.weight.zero_()
    for token_id, place in dimension.items():
        model.embedding.weight[token_id, place] = IDENTITY_SIZE / model.config.embedding_scale
    for read, written in zip(source, target, strict=True):
        model.output.weight[written, dimension[read]] = LOGIT
    model.output.weight[:, NULL] = -model.output.weight.sum(1)
