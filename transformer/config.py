"""Sizes and choices of a model as one frozen value, checked on creation, and the names of its
parts.

Whoever wants to know which tokens an attention reads, how deep it is or whether it is masked asks
``config.sites`` and ``config.stacks``. A model of a different shape has different tables. No
PyTorch.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

from transformer.text.kinds import PART, Checked, Kind, one_of, whole

Side = Literal["encoder", "decoder"]
"""A stack and the sequence it reads: the encoder reads the source, the decoder reads the target so
far."""
SublayerName = Literal["self_attention", "cross_attention", "feed_forward"]
ScoreName = Literal["scaled_dot", "dot", "additive"]
"""How scores come from queries and keys (``transformer.attention.ScoreRule``)."""


class AttentionKind(StrEnum):
    """The three attentions of an encoder-decoder (section 3.2.3)."""

    ENCODER = "encoder"
    DECODER = "decoder"
    CROSS = "cross"


@dataclass(frozen=True)
class Sublayer:
    """A sub-layer: its side, its layer from 0, and its part of the layer."""

    side: Side
    layer: int
    name: SublayerName

    @property
    def path(self) -> str:
        """What hooks call it: ``decoder.0.cross_attention``."""
        return f"{self.side}.{self.layer}.{self.name}"


Place = tuple[AttentionKind, int]
"""An attention sub-layer: its kind, and its layer from 0."""
Head = tuple[int, int]
"""A head of one kind of attention: its layer and its number there, both from 0."""
PlacedHead = tuple[AttentionKind, int, int]
"""A head of a model: its kind of attention, its layer and its number there, both from 0."""


@dataclass(frozen=True)
class Stack:
    """One stack of a model: its layers, and the sub-layers of each in the stream's order."""

    side: Side
    n_layers: int
    sublayers: tuple[SublayerName, ...]

    def passed(self) -> tuple[Sublayer, ...]:
        """Every sub-layer, in the order in which the residual stream passes them."""
        layers = range(self.n_layers)
        return tuple(
            Sublayer(self.side, layer, name) for layer in layers for name in self.sublayers
        )


@dataclass(frozen=True)
class Site:
    """Where a kind of attention sits in a model, and what it connects; alike in every layer."""

    kind: AttentionKind
    query_side: Side  # the side whose sequence asks; the attention sits in this side's stack
    key_side: Side  # the side whose sequence is attended to
    name: SublayerName  # its sub-layer of each layer
    n_layers: int  # how many layers have it
    own_keys: bool  # whether queries and keys come from one sequence: self-attention
    causal: bool  # whether query i sees keys 0 to i only
    score: ScoreName = "scaled_dot"
    title: str = ""  # what its maps are called, if not by the kind

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """What hooks call it in each layer: ``decoder.0.cross_attention``, …"""
        return tuple(self.sublayer(layer).path for layer in range(self.n_layers))

    def sublayer(self, layer: int) -> Sublayer:
        """The sub-layer that it is in a layer, from 0."""
        return Sublayer(self.query_side, layer, self.name)


def _site(kind: AttentionKind, n_layers: int, score: ScoreName) -> Site:
    """An attention of the paper (section 3.2.3)."""
    query: Side = "encoder" if kind is AttentionKind.ENCODER else "decoder"
    key: Side = "decoder" if kind is AttentionKind.DECODER else "encoder"
    name: SublayerName = "self_attention" if query == key else "cross_attention"
    return Site(
        kind=kind,
        query_side=query,
        key_side=key,
        name=name,
        n_layers=n_layers,
        own_keys=query == key,
        causal=kind is AttentionKind.DECODER,
        score=score,
    )


class Encoding(NamedTuple):
    """Where a positional encoding acts, and whether it knows distances only: a text may begin
    anywhere."""

    acts: Literal["nowhere", "embeddings", "rotation", "scores"]
    relative: bool


ENCODINGS = {
    "none": Encoding("nowhere", True),
    "sinusoidal": Encoding("embeddings", False),
    "learned": Encoding("embeddings", False),
    "shaw": Encoding("scores", True),
    "t5": Encoding("scores", True),
    "rotary": Encoding("rotation", True),
    "alibi": Encoding("scores", True),
}
"""The positional encodings; ``transformer.encodings`` computes them."""
RELATIVE = tuple(name for name, encoding in ENCODINGS.items() if encoding.relative)


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """How rotary positions turn queries and keys: by pos · base^(−2i/width) (Su et al. 2021)."""

    base: float = 10_000.0
    width: int | None = None  # of the part of each head that is turned; None for all of it
    # how the angles of longer texts than those of the first training were changed afterwards
    scaling: Literal["none", "linear", "llama3"] = "none"
    factor: float = 1.0  # "linear": all angles are divided by it; "llama3": those of long waves
    # "llama3": waves longer than ``trained_length / low`` tokens are divided, those shorter than
    # ``trained_length / high`` are not, and those between partly (Grattafiori et al. 2024, 3.4.1)
    low: float = 1.0
    high: float = 4.0
    trained_length: int = 8192


Norm = Literal["post", "pre"]
NormBy = Literal["layer", "rms"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]
Task = Literal["translate", "write", "continue", "fill", "read"]
SineLayout = Literal["interleaved", "halves", "inclusive"]

_BETWEEN = Kind(
    "a number between 0 and 1", lambda value: isinstance(value, float) and 0 < value < 1
)
_ABOVE_ONE = Kind("a number above 1", lambda value: isinstance(value, float) and value > 1)
_POSITIVE = Kind("a number above 0", lambda value: isinstance(value, float) and 0 < value < 1e9)
_Pieces = Annotated[int, whole(1, 1_000_000)]
_Width = Annotated[int, whole(1, 16_384)]
_Inner = Annotated[int, whole(1, 65_536)]
_Few = Annotated[int, whole(1, 256)]
_Length = Annotated[int, whole(1, 1_000_000)]
"""A config beyond these ranges is a mistake or an attack."""
RETIRED = {"decoder_unit": "self_attention"}
"""Entries of older files, with the one value of each that is read over."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelConfig(Checked):
    """Base of the configs of this package; ValueError if a value is out of its range or fields
    disagree."""

    vocab_size: _Pieces  # number of pieces
    d_model: _Width = 512  # width of the residual stream, or of the states
    d_ff: _Inner = 2048  # inner width of the position-wise feed-forward network (section 3.3)
    n_heads: _Few = 8  # attention heads per layer; divides ``d_model`` (section 3.2.2), unless:
    head_width: _Width | None = None  # width of one head, if it is not d_model / n_heads
    dropout: Annotated[float, PART] = (
        0.1  # probability of residual and embedding dropout (section 5.4)
    )
    # "post": LayerNorm(x + Sublayer(x)) as in the paper; "pre": x + Sublayer(LayerNorm(x)), with
    # one more LayerNorm at the end of each stack (Xiong et al. 2020)
    norm: Norm = "post"
    # "layer": LayerNorm (Ba et al. 2016); "rms": no mean and no shift (Zhang and Sennrich 2019)
    norm_by: NormBy = "layer"
    norm_epsilon: Annotated[float, _BETWEEN] = 1e-5  # added to the variance inside the norm
    activation: Activation = (
        "relu"  # non-linearity of the feed-forward network; the paper's is "relu"
    )
    # the activation of one inner map is multiplied by a second one, not activated (Shazeer 2020)
    gated: bool = False
    # linear maps add a bias; without, section 3.3's b₁ and b₂ and those of attention are 0
    biases: bool = True
    scaled_scores: bool = True  # q · k is divided by √d_k (equation 1)
    positions: str = "sinusoidal"  # name of a positional encoding, one of ``ENCODINGS``
    # order of the numbers in sinusoidal positions. "interleaved": alternating sines and cosines, as
    # in the paper; "halves": all sines, then all cosines; "inclusive": the same, but the last
    # wavelength is exactly 2π · 10000, as in tensor2tensor
    sine_layout: SineLayout = "interleaved"
    scaled_embeddings: bool = True  # token embeddings are multiplied by sqrt(d_model) (section 3.4)
    embedding_norm: bool = (
        False  # the sum of embedding and encoding is normalised before the first layer
    )
    scaled_output: bool = False  # what the output projection reads is divided by √d_model
    output_bias: bool = False  # a learned bias is added to the logits
    max_positions: _Length = 2048  # longest sequence that has positions, in tokens
    # position of the first token in the table of the positional encoding
    first_position: Annotated[int, whole(0, 16)] = 0
    pad_id: int = 0  # Id of the padding token. One past the last piece: padding is no piece.
    # Id of the token that the decoder starts with. One past the last piece: it starts with no
    # token, whose embedding is zero.
    bos_id: int = 1
    eos_id: int = 2  # id of the token that ends a sentence
    # id of the unknown piece. One past the last piece: every text has pieces.
    unk_id: int = 3
    trained_length: _Length | None = (
        None  # longest sequence seen in training, in tokens; None if unknown
    )

    # What only one architecture has among its entries; all others have these values.

    @property
    def tied_embeddings(self) -> bool:
        """Whether the output projection is the target's embedding table (section 3.4)."""
        return True

    @property
    def shared_embeddings(self) -> bool:
        """Whether source and target have one embedding table (section 3.4)."""
        return True

    @property
    def target_vocab_size(self) -> int | None:
        """Number of target pieces, if the target has its own vocabulary."""
        return None

    @property
    def decoder_d_ff(self) -> int | None:
        """``d_ff`` of the decoder, if it has another one than the encoder."""
        return None

    @property
    def languages(self) -> str:
        """Pieces that name a target language, separated by blanks."""
        return ""

    @property
    def language_pair(self) -> bool:
        """Whether a text begins with its own language and that of the output."""
        return False

    @property
    def prompts(self) -> str:
        """Beginnings of texts that say what to do, a line each."""
        return ""

    @property
    def task(self) -> str:
        """What the output is: a translation, whatever the text asks for, the text's continuation,
        or the words that are masked in it."""
        return "translate"

    @property
    def score(self) -> str:
        """Comparison of a recurrent decoder's state with the memory; empty without one."""
        return ""

    @property
    def reach(self) -> int:
        """How many positions a local query sees on either side of its centre."""
        return 1

    @property
    def n_key_heads(self) -> int | None:
        """Heads of keys and values of each layer, if there are fewer than heads of queries."""
        return None

    @property
    def attention_biases(self) -> bool | None:
        """Whether queries, keys and values have biases, if unlike the other linear maps."""
        return None

    @property
    def head_norm(self) -> bool:
        """Whether each head normalises its queries and keys, before any rotation."""
        return False

    @property
    def parallel(self) -> bool:
        """Whether both sub-layers of a layer read the stream that entered the layer."""
        return False

    @property
    def rotary(self) -> Rotation:
        """How rotary positions turn queries and keys."""
        return Rotation()

    @property
    def starts_with_token(self) -> bool:
        """Whether every output begins after ``bos_id``; else after its own first token."""
        return True

    @property
    def mask_id(self) -> int | None:
        """Id of the token that stands for a hidden word, if the model predicts such words."""
        return None

    @property
    def n_segments(self) -> int:
        """How many kinds of segments the encoder tells apart by a vector of their own; 0: none."""
        return 0

    @property
    def source_starts(self) -> bool:
        """Whether a source stands between ``bos_id`` and ``eos_id``; else it only ends."""
        return False

    @property
    def n_separators(self) -> int:
        """How many ends stand after the first text of a pair."""
        return 1

    @property
    def linear_output(self) -> bool:
        """Whether logits are a linear map of the last layer's output."""
        return True

    def __repr__(self) -> str:
        """The entries that differ from their defaults."""
        values = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        changed = (f"{name}={value!r}" for name, value, default in values if value != default)
        return f"{type(self).__name__}({', '.join(changed)})"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(0, self.vocab_size - 1).check("eos_id", self.eos_id)
        whole(0, self.n_target_pieces - 1).check("eos_id", self.eos_id)
        whole(0, self.vocab_size).check("unk_id", self.unk_id)
        whole(0, self.vocab_size).check("pad_id", self.pad_id)
        whole(0, self.n_target_pieces).check("bos_id", self.bos_id)
        if self.eos_id == self.pad_id:
            raise ValueError(
                f"eos_id and pad_id are both {self.eos_id}; the end of a text needs its own id."
            )
        if self.head_width is None and self.d_model % self.n_heads:
            raise ValueError(
                f"d_model ({self.d_model}) is not a multiple of n_heads ({self.n_heads}), "
                "so it cannot be divided into heads."
            )

    @property
    def d_head(self) -> int:
        """Width of one head, d_k = d_v = d_model / n_heads, or what the config says instead."""
        return self.head_width or self.d_model // self.n_heads

    @property
    def key_heads(self) -> int:
        """Heads of keys and values of each layer."""
        return self.n_key_heads or self.n_heads

    @property
    def group(self) -> int:
        """Heads of queries that read the same keys and values (Ainslie et al. 2023, section 2.2)."""
        return self.n_heads // self.key_heads

    @cached_property
    def placement(self) -> str:
        """Where LayerNorm stands: "pre" or "post"; "none" for a model without sub-layers, which has
        none."""
        return self.norm if any(stack.sublayers for stack in self.stacks.values()) else "none"

    @property
    def norm_name(self) -> str:
        """What the norm is called."""
        return {"layer": "LayerNorm", "rms": "RMSNorm"}[self.norm_by]

    @cached_property
    def embedding_scale(self) -> float:
        """Factor on the token embeddings, sqrt(d_model) (section 3.4), or 1."""
        return math.sqrt(self.d_model) if self.scaled_embeddings else 1.0

    @cached_property
    def output_scale(self) -> float:
        """Factor on what the output projection reads, 1/√d_model or 1."""
        return self.d_model**-0.5 if self.scaled_output else 1.0

    @property
    def n_target_pieces(self) -> int:
        """Number of pieces that the decoder reads and writes."""
        return self.target_vocab_size or self.vocab_size

    @cached_property
    def language_pieces(self) -> tuple[str, ...]:
        """The pieces that name a target language; empty for a model with only one."""
        return tuple(self.languages.split())

    @property
    def prompt_texts(self) -> tuple[str, ...]:
        """Beginnings of texts that say what to do; empty for a model that needs none."""
        return tuple(filter(None, self.prompts.split("\n")))

    @property
    def tables(self) -> int:
        """Numbers in the tables of embeddings and of the output projection."""
        targets = (not self.shared_embeddings) + (not self.tied_embeddings)
        return (self.vocab_size + targets * self.n_target_pieces) * self.d_model

    @cached_property
    def stacks(self) -> Mapping[Side, Stack]:
        """The model's stacks by side."""
        raise NotImplementedError

    @cached_property
    def sites(self) -> Mapping[AttentionKind, Site]:
        """The model's attentions by kind: what each connects, how deep it is, where it sits.

        The last one is what a picture of the model opens on: it reads what the output rests on.
        """
        score: ScoreName = "scaled_dot" if self.scaled_scores else "dot"
        kinds = {AttentionKind(side): stack for side, stack in self.stacks.items()}
        decoder = self.stacks.get("decoder")
        if decoder is not None and "cross_attention" in decoder.sublayers:
            kinds[AttentionKind.CROSS] = decoder
        return {kind: _site(kind, stack.n_layers, score) for kind, stack in kinds.items()}

    @cached_property
    def writes(self) -> bool:
        """Whether it writes an output, token by token: whether it has a decoder."""
        return "decoder" in self.stacks

    @cached_property
    def last_kind(self) -> AttentionKind:
        """The kind that reads what an output rests on: the last of the sites."""
        return [*self.sites][-1]

    @cached_property
    def cursor_side(self) -> Side:
        """The side whose tokens a cursor walks over: that of the last kind's queries."""
        return self.sites[self.last_kind].query_side

    @cached_property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """Number of layers and of heads by kind of attention."""
        return {str(kind): (site.n_layers, self.n_heads) for kind, site in self.sites.items()}

    def inner_width(self, side: Side) -> int:
        """Inner width of the feed-forward networks of a stack."""
        return (side == "decoder" and self.decoder_d_ff) or self.d_ff

    @property
    def products(self) -> Mapping[Side, int]:
        """By side: the numbers of all matrices, besides those of attention, that each position
        passes."""
        n_maps = 3 if self.gated else 2
        return {
            side: stack.n_layers * n_maps * self.d_model * self.inner_width(side)
            for side, stack in self.stacks.items()
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class TransformerConfig(ModelConfig):
    """Sizes and choices of an encoder-decoder Transformer (Vaswani et al. 2017, section 3 and table
    3).

    Source and target share one vocabulary (section 5.1), unless ``target_vocab_size`` says
    otherwise.
    """

    n_encoder_layers: _Few = 6
    n_decoder_layers: _Few = 6
    tied_embeddings: bool = (
        True  # the output projection is the target's embedding table (section 3.4)
    )
    shared_embeddings: bool = True  # source and target have one embedding table (section 3.4)
    target_vocab_size: _Pieces | None = (
        None  # number of target pieces, if the target has its own vocabulary
    )
    # pieces such as ``>>fra<<``, separated by blanks; one at the start of a source names the target
    # language
    languages: str = ""
    # a text begins with two of them: its own, which the encoder reads, and that of the output, with
    # which the decoder begins
    language_pair: bool = False
    task: Task = "translate"  # what the output is: a translation, or whatever the text asks for
    prompts: str = ""  # beginnings of texts that say what to do, such as "summarize: ", a line each
    decoder_d_ff: _Inner | None = (
        None  # ``d_ff`` of the decoder, if it has another one than the encoder
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shared_embeddings and self.target_vocab_size not in (None, self.vocab_size):
            raise ValueError(
                f"target_vocab_size ({self.target_vocab_size}) differs from vocab_size "
                f"({self.vocab_size}), so source and target cannot share one embedding table."
            )

    @cached_property
    def stacks(self) -> Mapping[Side, Stack]:
        """Encoder and decoder by side."""
        return {
            "encoder": Stack("encoder", self.n_encoder_layers, ("self_attention", "feed_forward")),
            "decoder": Stack(
                "decoder",
                self.n_decoder_layers,
                ("self_attention", "cross_attention", "feed_forward"),
            ),
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class LanguageModelConfig(ModelConfig):
    """Sizes and choices of a causal language model: a decoder alone (Radford et al. 2018)."""

    architecture: Literal["language_model"] = "language_model"  # ``config.json`` says so
    n_layers: _Few = 6  # of its one stack
    norm: Norm = "pre"
    # a row of training holds several texts, so that this package trains relative positions only
    positions: Annotated[str, one_of(*RELATIVE, "learned")] = "rotary"
    # heads of keys and values, each read by a group of heads of queries (Shazeer 2019, Ainslie et
    # al. 2023); None: every head has its own
    n_key_heads: _Few | None = None
    # whether queries, keys and values have biases, if unlike the other linear maps
    attention_biases: bool | None = None
    head_norm: bool = False  # each head normalises its queries and keys (Henry et al. 2020)
    # both sub-layers of a layer read the stream that entered the layer (Wang and Komatsuzaki 2021)
    parallel: bool = False
    tied_embeddings: bool = True  # the output projection is the embedding table (Press, Wolf 2017)
    rotary_base: Annotated[float, _ABOVE_ONE] = 10_000.0
    rotary_width: _Width | None = None  # of the part of each head that is turned; None for all
    rotary_scaling: Literal["none", "linear", "llama3"] = "none"  # see ``Rotation``
    rotary_factor: Annotated[float, _POSITIVE] = 1.0
    rotary_low: Annotated[float, _POSITIVE] = 1.0
    rotary_high: Annotated[float, _POSITIVE] = 4.0
    rotary_trained_length: _Length = 8192
    # whether a text begins after ``bos_id``; else its own first token is what is read first
    starts_with_token: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_heads % self.key_heads:
            raise ValueError(
                f"n_heads ({self.n_heads}) is not a multiple of n_key_heads ({self.key_heads}), so "
                "its heads cannot share keys in equal groups."
            )
        if self.rotary_width is not None and not 0 < self.rotary_width <= self.d_head:
            raise ValueError(
                f"rotary_width is {self.rotary_width}; it must be from 1 to the width of a head, "
                f"{self.d_head}."
            )
        if self.rotary_scaling == "llama3" and self.rotary_low >= self.rotary_high:
            raise ValueError(
                f"rotary_low ({self.rotary_low}) must be less than rotary_high "
                f"({self.rotary_high})."
            )

    @cached_property
    def rotary(self) -> Rotation:
        """How rotary positions turn queries and keys."""
        return Rotation(
            base=self.rotary_base,
            width=self.rotary_width,
            scaling=self.rotary_scaling,
            factor=self.rotary_factor,
            low=self.rotary_low,
            high=self.rotary_high,
            trained_length=self.rotary_trained_length,
        )

    @property
    def task(self) -> str:
        """It continues a text."""
        return "continue"

    @cached_property
    def stacks(self) -> Mapping[Side, Stack]:
        """The decoder alone."""
        return {"decoder": Stack("decoder", self.n_layers, ("self_attention", "feed_forward"))}


@dataclass(frozen=True, kw_only=True, repr=False)
class EncoderConfig(ModelConfig):
    """Sizes and choices of an encoder alone, which predicts masked words (Devlin et al. 2019).

    A text stands between ``bos_id`` and ``eos_id``, BERT's [CLS] and [SEP]; ``eos_id`` also divides
    two texts.
    """

    architecture: Literal["encoder"] = "encoder"  # always "encoder"; ``config.json`` says so
    n_layers: _Few = 6  # of its one stack
    positions: Annotated[str, one_of(*ENCODINGS)] = "learned"
    activation: Activation = "gelu"
    scaled_embeddings: bool = False
    embedding_norm: bool = True
    # id of the piece that stands for a hidden word; None of a model that predicts none
    mask_id: int | None = None
    # Vectors for the first text, the second, …, of a pair, added to the embeddings of its tokens
    # (section 3.2 and figure 2); 0: none
    n_segments: Annotated[int, whole(0, 16)] = 0
    # ends after the first text of a pair: one, or RoBERTa's two (Liu et al. 2019)
    n_separators: Annotated[int, whole(1, 2)] = 1
    # what predicts a masked word passes a linear map, the activation and a norm before the output
    # projection; otherwise the last layer's output is projected as it is
    output_transform: bool = False
    tied_embeddings: bool = True  # the output projection is the embedding table

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mask_id is not None:
            whole(0, self.vocab_size - 1).check("mask_id", self.mask_id)

    @property
    def source_starts(self) -> bool:
        """It does: BERT's [CLS]."""
        return True

    @property
    def task(self) -> str:
        """It says what a masked word may be, unless its vocabulary has no mask."""
        return "read" if self.mask_id is None else "fill"

    @property
    def linear_output(self) -> bool:
        """Not if its output is transformed first."""
        return not self.output_transform

    @cached_property
    def stacks(self) -> Mapping[Side, Stack]:
        """The encoder alone."""
        return {"encoder": Stack("encoder", self.n_layers, ("self_attention", "feed_forward"))}

    @property
    def products(self) -> Mapping[Side, int]:
        """Those of the layers, and of the transform before the output."""
        transform = self.output_transform * self.d_model**2
        return {"encoder": super().products["encoder"] + transform}


Score = Literal["additive", "bilinear", "dot", "local"]
"""Comparison of a recurrent decoder's state with the memory."""
SCORE_RULES: dict[Score, ScoreName]
SCORE_RULES = {"additive": "additive", "bilinear": "dot", "dot": "dot", "local": "dot"}
"""The rule that is left of each score once states and memory are projected."""


@dataclass(frozen=True, kw_only=True, repr=False)
class RecurrentConfig(ModelConfig):
    """Sizes and choices of a recurrent encoder-decoder with attention (Bahdanau et al. 2015).

    Half of ``d_model`` reads the source forwards, the other half backwards. ``d_ff``, ``norm`` and
    ``activation`` have no meaning here.
    """

    architecture: Literal["recurrent"] = "recurrent"  # always "recurrent"; ``config.json`` says so
    cell: Literal["gru"] = "gru"  # the recurrent cell
    # how the decoder's state is compared with the memory; "local" is "bilinear" near a predicted
    # centre
    score: Score = "additive"
    # how many positions a local query sees on either side of its centre
    reach: Annotated[int, whole(1, 1_000)] = 4
    n_heads: _Few = 1  # always 1
    positions: Literal["none"] = (
        "none"  # always "none": the order of the words is in the order of the steps
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_heads != 1 or self.d_model % 2:
            raise ValueError(
                f"n_heads is {self.n_heads} and d_model {self.d_model}; a recurrent model has one "
                "head and an even width."
            )

    @cached_property
    def stacks(self) -> Mapping[Side, Stack]:
        """Encoder and decoder, each without sub-layers."""
        return {"encoder": Stack("encoder", 0, ()), "decoder": Stack("decoder", 0, ())}

    @cached_property
    def sites(self) -> Mapping[AttentionKind, Site]:
        """Cross-attention alone, in one layer."""
        return {AttentionKind.CROSS: _site(AttentionKind.CROSS, 1, SCORE_RULES[self.score])}

    @property
    def products(self) -> Mapping[Side, int]:
        """Three gates for input and state; in the encoder two GRUs of half the width."""
        square = self.d_model**2
        return {"encoder": 9 * square // 2, "decoder": 7 * square}


ARCHITECTURES: dict[str, type[ModelConfig]] = {
    "transformer": TransformerConfig,
    "language_model": LanguageModelConfig,
    "encoder": EncoderConfig,
    "recurrent": RecurrentConfig,
}
"""By the entry "architecture" of ``config.json``; a file without this entry describes a
Transformer."""


def config_from(values: dict[str, Any]) -> ModelConfig:
    """Reads a flat dictionary, as ``config.json`` holds it, of any architecture.

    ValueError if the architecture or a name is unknown or missing, or a value is out of range.
    """
    architecture = values.get("architecture", "transformer")
    one_of(*ARCHITECTURES).check("architecture", architecture)
    known = {field.name for field in fields(ARCHITECTURES[architecture])}
    for name, ordinary in RETIRED.items():
        if values.get(name, ordinary) != ordinary:
            raise ValueError(
                f"The config has {name} {values[name]!r:.40}, which this package does not run."
            )
    if unknown := sorted(set(values) - known - {*RETIRED}):
        raise ValueError(f"The config has unknown entries: {', '.join(map(repr, unknown))}.")
    if "vocab_size" not in values:
        raise ValueError("The config has no 'vocab_size'.")
    return ARCHITECTURES[architecture](**{name: values[name] for name in known & values.keys()})
