"""Positional encodings: one class for each, in one registry, behind one interface, and their bias
rules.

An encoding may act in three places; the base class acts in none of them:

* ``added(n)``: a table that is added to the scaled embeddings (section 3.5);
* ``rotate(x, first)``: a rotation of queries and keys before their product;
* ``rules(n)``: for each layer, a rule for numbers that are added to the scores.

Every stack has its own encoding. Cross-attention has none, because its keys belong to another
sentence.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from transformer.config import ModelConfig, Rotation

BASE = 10_000.0
SHAW_REACH = 16
T5_BUCKETS = 32
T5_MAX_DISTANCE = 128
Heads = int | slice
ALL_HEADS = slice(None)
BIASES = {"alibi": 1, "t5": 2, "shaw": 3}
"""Rules for a bias, by encoding, with the number of axes of their table, by which a rule is
known."""


class BiasRule:
    """Numbers that positions add to the scores q · k / √d_k, as a rule with one table.

    So memory does not grow with the text: the matrix exists only for the rows and columns that are
    asked for. All rules depend on distances j − i alone.

    "alibi": −m · |i − j| with a fixed slope m per head (Press et al. 2022, section 3), table
    (heads,). Without a causal mask, keys at the same distance left and right get the same bias.
    "t5": one learned number per head and distance, table (heads, 2 × reach + 1), from −reach to
    reach and cut off beyond (Raffel et al. 2020, section 2.1). "shaw": q_i · a_{j−i} / √d_k with
    learned vectors a, table (heads, 2 × reach + 1, d_head) (Shaw et al. 2018, equations 2 and 4).
    """

    def __init__(self, name: str, table: Tensor) -> None:
        self.name, self.table = name, table
        self.divided = name == "shaw"  # a product with the query, divided by √d_k as q · k is
        self._last: tuple[tuple[int, int, int], Tensor] | None = None

    def scores(
        self, query: Tensor, rows: Tensor, columns: Tensor, heads: Heads = ALL_HEADS
    ) -> Tensor:
        """(queries, keys) or (heads, queries, keys) bias, with leading dimensions if it uses
        the query.

        Args:
            query: (…, queries, d_head) of one head or (…, heads, queries, d_head) of several.
            rows: (queries,) positions of the queries.
            columns: (keys,) positions of the keys.
            heads: The heads that ``query`` holds.
        """
        table = self.table[heads]
        distances = columns - rows[:, None]
        if self.name == "alibi":
            return -table[..., None, None] * distances.abs()
        reach = self.table.shape[1] // 2
        places = distances.clamp(-reach, reach) + reach
        if self.name == "t5":
            return table[..., places]
        # The queries meet all vectors first; each cell then picks its product, so that no tensor of
        # size queries × keys × d_head exists.
        products = query @ table.transpose(-1, -2) / math.sqrt(query.shape[-1])
        return products.gather(-1, places.expand(*products.shape[:-2], *places.shape))

    def matrix(self, query: Tensor, keys: int, first: int) -> Tensor:
        """(batch or 1, heads, queries, keys) for queries (batch, heads, queries, d_head) from
        ``first`` on.

        The layers of one pass share the matrix of a rule that does not depend on the query.
        """
        asked = first, query.shape[2], keys
        if self._last is not None and self._last[0] == asked:
            return self._last[1]
        rows = torch.arange(first, first + query.shape[2], device=query.device)
        bias = self.scores(query, rows, torch.arange(keys, device=query.device)).to(query.dtype)
        bias = (
            bias if bias.dim() == 4 else bias[None]
        )  # the fused kernel takes no mask of three dimensions
        if not self.divided:
            self._last = asked, bias
        return bias


def bias_rule(name: str, table: Tensor, n_heads: int, d_head: int) -> BiasRule:
    """The rule of a file; ValueError if it is unknown, or its table does not fit."""
    if name not in BIASES:
        raise ValueError(
            f"The bias rule {name!r} is unknown; use one of {', '.join(sorted(BIASES))}."
        )
    shape = tuple(table.shape)
    odd = shape[1] | 1 if len(shape) > 1 else 1
    if shape != (expected := (n_heads, odd, d_head)[: BIASES[name]]):
        raise ValueError(
            f"The table of the bias rule {name} has the sizes {shape}; it must have {expected}: "
            "heads, an odd number of distances, d_head."
        )
    return BiasRule(name, table)


def alibi_slopes(n_heads: int) -> Tensor:
    """(heads,) float64 slopes (Press et al. 2022, section 3).

    2^(−8/n), 2^(−16/n), … if the number of heads n is a power of two; otherwise the slopes of the
    next lower power of two, then every other slope of the next higher one.
    """
    below = 2 ** int(math.log2(n_heads))
    lower, higher = (
        2.0 ** (-8 / count * torch.arange(1, count + 1, dtype=torch.float64))
        for count in (below, 2 * below)
    )
    return torch.cat([lower, higher[0::2][: n_heads - below]])


def t5_buckets(
    distances: Tensor, *, causal: bool, buckets: int = 32, max_distance: int = 128
) -> Tensor:
    """The bucket, from 0, of each distance j − i of a key from its query (Raffel et al. 2020).

    Near keys have buckets of their own, far ones share them logarithmically, and from
    ``max_distance`` on the last one. ``causal`` gives all buckets to keys before the query (later
    keys share the query's own, 0); otherwise one half is for keys up to the query, the other for
    keys after it.
    """
    buckets = buckets if causal else buckets // 2
    start = 0 if causal else buckets * (distances > 0).long()
    away = -distances.clamp(max=0) if causal else distances.abs()
    exact = buckets // 2
    ratio = (away.double().clamp(min=exact) / exact).log() / math.log(max_distance / exact)
    far = (
        exact + (ratio * (buckets - exact) + 1e-9).long()
    )  # so that a bucket's edge falls into that bucket
    return start + torch.where(away < exact, away, far.clamp(max=buckets - 1))


class PositionalEncoding(nn.Module):
    """No encoding at all; the base class of all encodings."""

    spread = 0.1
    """Standard deviation of the initial values of a learned table."""

    def __init__(
        self,
        config: ModelConfig,  # sizes
        *,
        n_layers: int = 1,  # layers of the stack it serves
        causal: bool = False,  # whether the stack's queries see no later key
    ) -> None:
        super().__init__()
        self.max_positions = config.max_positions
        self.prepare(config, n_layers, causal)

    def prepare(self, config: ModelConfig, n_layers: int, causal: bool) -> None:
        """Makes the tables; arguments as those of the constructor."""

    def initialise(self) -> None:
        """Draws the initial values of a learned table."""
        for table in self.parameters():
            nn.init.normal_(table, std=self.spread)

    def added(self, length: int, first: int = 0) -> Tensor | None:
        """(length, d_model) for positions from ``first`` on, or None; ValueError beyond the
        last."""
        return None

    def rotate(self, x: Tensor, first: int = 0) -> Tensor:
        """Queries or keys (batch, heads, length, d_head), rotated by their positions; errors as
        ``added``."""
        return x

    def rules(self, n_layers: int) -> Sequence[BiasRule | None]:
        """For each layer, the rule for the numbers added to its scores in one pass, or None."""
        return [None] * n_layers

    def check(self, length: int, first: int = 0) -> None:
        """Raises ValueError if the positions reach beyond ``max_positions``."""
        if first + length > self.max_positions:
            raise ValueError(
                f"The sequence has {first + length:,} tokens, but this model has "
                f"{self.max_positions:,} positions; shorten it."
            )


class PositionTable(PositionalEncoding):
    """An encoding whose row for each position is added to the embedding there."""

    table: Tensor  # (max_positions, d_model)

    def added(self, length: int, first: int = 0) -> Tensor:
        self.check(length, first)
        return self.table[first : first + length]


class Sinusoidal(PositionTable):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(…) (section 3.5).

    ``sine_layout="halves"`` gives the same numbers with all sines first; "inclusive" too, with
    exponents i/(d_model/2 − 1) instead of 2i/d_model.
    """

    def prepare(self, config: ModelConfig, n_layers: int, causal: bool) -> None:
        inclusive = config.sine_layout == "inclusive"
        first, length = config.first_position, config.max_positions
        table = sinusoidal_table(first + length, config.d_model, inclusive=inclusive)[
            first:
        ].float()
        if config.sine_layout != "interleaved":
            table = torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)
        self.register_buffer("table", table, persistent=False)


class Learned(PositionTable):
    """One learned vector per position, e = w + p (Gehring et al. 2017, section 3.1)."""

    def prepare(self, config: ModelConfig, n_layers: int, causal: bool) -> None:
        self.table = nn.Parameter(torch.empty(config.max_positions, config.d_model))


class RelativeKeys(PositionalEncoding):
    """e_ij = q_i · (k_j + a_{j−i}) / √d_k, distances clipped to ±16 (Shaw et al. 2018, equations 2
    and 4).

    Only keys get vectors: the paper found vectors for values unnecessary (table 3). As in its base
    model, every layer and head has its own.
    """

    def prepare(self, config: ModelConfig, n_layers: int, causal: bool) -> None:
        shape = (n_layers, config.n_heads, 2 * SHAW_REACH + 1, config.d_head)
        self.vectors = nn.Parameter(torch.empty(shape))
        self.spread = config.d_head**-0.5

    def rules(self, n_layers: int) -> list[BiasRule]:
        return [BiasRule("shaw", vectors) for vectors in self.vectors[:n_layers]]


class Buckets(PositionalEncoding):
    """A learned number per head and bucket of distances, shared by the stack (Raffel et al. 2020,
    2.1).

    As in T5, 32 buckets up to distance 128: half of them for each direction in the encoder, all of
    them for keys before the query in the decoder. T5's scores are not divided by √d_k, see
    ``scaled_scores``.
    """

    places: Tensor

    def prepare(self, config: ModelConfig, n_layers: int, causal: bool) -> None:
        self.weight = nn.Parameter(torch.empty(config.n_heads, T5_BUCKETS))
        distances = torch.arange(-T5_MAX_DISTANCE, T5_MAX_DISTANCE + 1)
        places = t5_buckets(
            distances, causal=causal, buckets=T5_BUCKETS, max_distance=T5_MAX_DISTANCE
        )
        self.register_buffer("places", places, persistent=False)

    def rules(self, n_layers: int) -> list[BiasRule]:
        return [BiasRule("t5", self.weight[:, self.places])] * n_layers


class Rotary(PositionalEncoding):
    """Rotates each pair of dimensions (2i, 2i+1) of q, k by pos · 10000^(−2i/d_k) (Su et al. 2021,
    eq. 15), or as ``config.rotary`` says.

    The product of a rotated query and a rotated key depends only on the difference of their
    positions. ValueError if what is turned has an odd width.
    """

    turns: Tensor  # (positions, width / 2, 2) cosine and sine of each pair's angle

    def prepare(self, config: ModelConfig, n_layers: int, causal: bool) -> None:
        self.width = config.rotary.width or config.d_head
        if self.width % 2:
            raise ValueError(
                f"Rotary positions rotate pairs of dimensions; heads of {self.width} leave one "
                "over."
            )
        positions = torch.arange(config.max_positions, dtype=torch.float64)[:, None]
        angles = positions * rotary_frequencies(config.rotary, self.width)
        turns = torch.stack([angles.cos(), angles.sin()], dim=-1).float()
        self.register_buffer("turns", turns, persistent=False)

    def rotate(self, x: Tensor, first: int = 0) -> Tensor:
        self.check(x.shape[2], first)
        if self.width < x.shape[-1]:
            (turned, kept) = x.tensor_split([self.width], dim=-1)
            return torch.cat([self._turned(turned.contiguous(), first), kept], dim=-1)
        return self._turned(x, first)

    def _turned(self, x: Tensor, first: int) -> Tensor:
        """(…, length, width): each pair as a complex number, which one product turns.

        ``python -m benchmarks decoders`` measures what that gains.
        """
        computed = torch.promote_types(x.dtype, torch.float32)
        numbers = x.to(computed).view(*x.shape[:-1], self.width // 2, 2)
        turns = self.turns[first : first + x.shape[-2]].to(computed)
        turned = torch.view_as_complex(numbers) * torch.view_as_complex(turns)
        return torch.view_as_real(turned).flatten(-2).to(x.dtype)


class Alibi(PositionalEncoding):
    """A fixed penalty for distance, −m · |i − j|, with one slope m per head (Press et al. 2022,
    section 3).

    The paper has only a decoder. In an encoder both directions get the same penalty, so only the
    position of ``</s>`` distinguishes left from right.
    """

    slopes: Tensor

    def prepare(self, config: ModelConfig, n_layers: int, causal: bool) -> None:
        self.register_buffer("slopes", alibi_slopes(config.n_heads).float(), persistent=False)

    def rules(self, n_layers: int) -> list[BiasRule]:
        return [BiasRule("alibi", self.slopes)] * n_layers


def sinusoidal_table(
    length: int,  # number of positions, from 0
    d_model: int,  # number of dimensions; even ones hold sines, odd ones cosines
    base: float = BASE,  # sets the longest wavelength, 2π · base tokens
    *,
    # whether the last pair has this wavelength; otherwise the pair after it would
    inclusive: bool = False,
) -> Tensor:
    """(length, d_model) sinusoids of section 3.5, computed in float64."""
    angles = rotary_angles(length, d_model, base, d_model - 2 if inclusive else d_model)
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles[:, : d_model // 2])
    return table


def rotary_angles(length: int, width: int, base: float = BASE, period: int | None = None) -> Tensor:
    """(length, width / 2) float64: position × base^(−2i/period), i from 0; ``period`` is usually
    the width.

    By these angles rotary positions rotate each pair; sinusoids are their sines and cosines.
    """
    positions = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, width, 2, dtype=torch.float64)
    return positions * torch.exp(
        -math.log(base) * even / max(1, width if period is None else period)
    )


def rotary_frequencies(rotation: Rotation, width: int) -> Tensor:
    """(width / 2,) float64 radians that each pair of dimensions turns from one position to the
    next."""
    frequencies = rotary_angles(2, width, rotation.base)[1]
    if rotation.scaling == "linear":
        return frequencies / rotation.factor
    if rotation.scaling == "llama3":
        # how many waves the texts of the first training held: many for what tells neighbours apart
        waves = rotation.trained_length * frequencies / (2 * math.pi)
        kept = ((waves - rotation.low) / (rotation.high - rotation.low)).clamp(0.0, 1.0)
        return kept * frequencies + (1 - kept) * frequencies / rotation.factor
    return frequencies


def shift_matrix(
    offset: int,  # k of PE(pos + k)
    d_model: int,  # number of dimensions, even
    base: float = BASE,  # as in ``sinusoidal_table``
) -> Tensor:
    """(d_model, d_model) float64 M with PE(pos + offset) = M PE(pos), for every pos (section 3.5).

    One rotation per pair of dimensions: sin(a + b) = sin a cos b + cos a sin b, cos(a + b) = cos a
    cos b − sin a sin b. ValueError if ``d_model`` is odd; its last sine has no cosine.
    """
    if d_model % 2:
        raise ValueError(
            f"d_model is {d_model}; sines and cosines come in pairs, so it must be even."
        )
    angles = offset * rotary_angles(2, d_model, base)[1]
    even = torch.arange(0, d_model, 2)
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    matrix[even, even] = matrix[even + 1, even + 1] = angles.cos()
    matrix[even, even + 1] = angles.sin()
    matrix[even + 1, even] = -angles.sin()
    return matrix


REGISTRY: dict[str, type[PositionalEncoding]] = {
    "none": PositionalEncoding,
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "shaw": RelativeKeys,
    "t5": Buckets,
    "rotary": Rotary,
    "alibi": Alibi,
}


def make_positions(
    config: ModelConfig,  # sizes, and the name
    *,
    n_layers: int = 1,  # layers of the stack
    causal: bool = False,  # whether the stack's queries see no later key
) -> PositionalEncoding:
    """The encoding that the config names, for one stack; ValueError if unknown or if sizes do not
    fit."""
    if config.positions not in REGISTRY:
        raise ValueError(
            f"positions is {config.positions!r}; known encodings are {', '.join(sorted(REGISTRY))}."
        )
    return REGISTRY[config.positions](config, n_layers=n_layers, causal=causal)
