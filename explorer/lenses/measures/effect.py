"""What a key did: the change of a token's log-probability when the key is taken away, by running again.

Four questions with four answers. *hidden*: the key's score is −∞, and the other keys share its weight.
*zeroed*: its weight stays, its value is 0. *mean*: its value is the mean of the values that the query sees.
*left out*: the source word is not in the text, so that other tokens move (``left_out``). Effects do not add.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from explorer.lenses.measures.passes import forced_passes
from explorer.lenses.measures.stream import Tell, UnmeasuredError, recorded, silent
from transformer.config import AttentionKind, ModelConfig
from transformer.hooks import At, Edit
from transformer.model import Transformer
from transformer.run import Translation
from transformer.translator import Translator
from transformer.view import Array

Way = Literal["hidden", "zeroed", "mean"]
WAYS: tuple[Way, ...] = get_args(Way)
AT_ONCE = 1024
"""Tokens of a pass: few enough that progress is told, and somebody who waits can leave, within a second."""


class Cut(NamedTuple):
    """Keys that are taken away in a run."""

    kind: AttentionKind
    keys: tuple[int, ...]  # positions of the keys, from 0
    way: Way = "hidden"
    layer: int | None = None  # in this layer, from 0; None for all
    head: int | None = None  # in this head, from 0; None for all
    query: int | None = None  # for this query, from 0; None for all


def cut_edits(runs: Sequence[Sequence[Cut]], config: ModelConfig) -> dict[str, list[Edit]]:
    """Edits that take keys away in each row of a batch, in its own places.

    A query that sees no key any more gets no number.
    """
    edits: dict[str, list[Edit]] = {}
    for kind, site in config.sites.items():
        for layer in range(site.n_layers):
            cuts = [
                (row, cut)
                for row, several in enumerate(runs)
                for cut in several
                if cut.kind is kind and cut.layer in (None, layer)
            ]
            if cuts:
                path = site.sublayer(layer).path
                edits[f"{path}.scores"] = [partial(_hidden, cuts)]
                edits[f"{path}.weights"] = [partial(_without, cuts)]
    return edits


def _cells(cuts: Sequence[tuple[int, Cut]], way: Way, like: Tensor) -> Tensor:
    """(rows, heads, queries, keys) bool: what is taken away in this way."""
    taken = torch.zeros_like(like, dtype=torch.bool)
    for row, cut in cuts:
        if cut.way == way:
            heads = slice(None) if cut.head is None else slice(cut.head, cut.head + 1)
            queries = slice(None) if cut.query is None else slice(cut.query, cut.query + 1)
            taken[row, heads, queries, list(cut.keys)] = True
    return taken


def _hidden(cuts: Sequence[tuple[int, Cut]], scores: Tensor, at: At) -> Tensor:
    return scores.masked_fill(_cells(cuts, "hidden", scores), -torch.inf)


def _without(cuts: Sequence[tuple[int, Cut]], weights: Tensor, at: At) -> Tensor:
    zeroed, mean = (_cells(cuts, way, weights) for way in ("zeroed", "mean"))
    rest = weights.masked_fill(zeroed | mean, 0.0)
    if not bool(mean.any()):
        return rest
    assert at.mask is not None
    visible = at.mask.expand_as(weights).to(weights)
    return rest + (weights * mean).sum(-1, keepdim=True) * visible / visible.sum(-1, keepdim=True)


class Effects:
    """Effects in one run: Δ log p of its tokens, in nats, negative if the token needed what was taken."""

    def __init__(
        self,
        translator: Translator,
        run: Translation,
        target: Sequence[int] = (),  # ids that are scored in the place of the run's own
    ) -> None:
        """Prepares forced passes.

        Raises:
            UnmeasuredError: The model is no Transformer, or something was changed in the run.
        """
        recorded(run)
        assert isinstance(translator.model, Transformer)
        self._model, self._run = translator.model, run
        self._source = [*translator.ids(run.source_text), translator.config.eos_id]
        self._target = target or run.target_ids
        (base,) = self._passes([()])
        self.base = base[0]
        """(target,) float32: log-probability of every token without a cut, in nats."""

    def _passes(self, runs: Sequence[Sequence[Cut]]) -> Iterator[Tensor]:
        edits = partial(cut_edits, config=self._model.config)
        return forced_passes(self._model, self._source, self._target, runs, edits, AT_ONCE)

    def of(self, cuts: Iterable[Sequence[Cut]], tell: Tell = silent) -> Tensor:
        """(runs, target) Δ log p of every token, float32."""
        runs, found = list(cuts), [torch.zeros(0, len(self.base))]
        for part in self.parts(runs):
            found.append(part)
            tell(sum(map(len, found)) / len(runs))
        return torch.cat(found)

    def parts(self, cuts: Sequence[Sequence[Cut]]) -> Iterator[Tensor]:
        """As ``of``, in parts of as many runs as fit a pass."""
        yield from (part - self.base for part in self._passes(cuts))

    def left_out(self, positions: Iterable[int]) -> Tensor:
        """(target,) Δ log p of the same translation, if some source tokens are not in the text."""
        gone = set(positions)
        kept = [each for place, each in enumerate(self._source) if place not in gone]
        if len(kept) < 2:
            raise UnmeasuredError("Without these tokens, no source is left.")
        (without,) = forced_passes(self._model, kept, self._run.target_ids, [()], lambda _: {})
        return without[0] - self.base


def on_difference(
    translator: Translator,
    run: Translation,
    step: int,  # from 0
    against: int,  # id of the other token
    tell: Tell = silent,  # hears what share is done
) -> Array:
    """Change of z_A − z_B at a step, each source token hidden from all heads of cross-attention.

    A is the token of the step. z_A − z_B = log p_A − log p_B, so the two effects on log p are subtracted.

    Returns:
        (source,) float32, in nats.

    Raises:
        UnmeasuredError: The model is no Transformer, or something was changed in the run.
    """
    cuts = [(Cut(AttentionKind.CROSS, (key,)),) for key in range(len(run.source_tokens))]
    other = (*run.target_ids[:step], against, *run.target_ids[step + 1 :])
    first = Effects(translator, run).of(cuts, lambda share: tell(share / 2))[:, step]
    second = Effects(translator, run, other).of(cuts, lambda share: tell((1 + share) / 2))[:, step]
    return np.asarray(first - second, np.float32)


def cells(
    run: Translation,
    kind: AttentionKind | str,
    layer: int,
    head: int | None,  # None for all heads of the layer
    way: Way = "hidden",
    rows: Iterable[int] | None = None,  # queries, from 0; None for all
) -> list[Cut]:
    """A cut for every cell of a head that the mask does not hide."""
    kind = AttentionKind(kind)
    mask = recorded(run).layer(kind, layer, head).mask().numpy()
    queries = range(len(mask)) if rows is None else rows
    return [
        Cut(kind, (int(key),), way, layer, head, query)
        for query in queries
        for key in np.flatnonzero(mask[query])
    ]


def effect(
    translator: Translator,
    run: Translation,
    kind: AttentionKind | str,
    layer: int,
    head: int | None,  # None for all heads of the layer
    way: Way = "hidden",
    step: int
    | None = None,  # the step whose token is asked for, from 0; None: the one that the query predicts
    rows: Iterable[int] | None = None,  # queries, from 0; None for all
    tell: Tell = silent,  # hears what share is done
) -> Array:
    """Δ log p of a token without each cell of a head, by running again for each.

    Δ log p = log p(y | without the cell) − log p(y): below zero, the token needed the key. Effects of several
    cells do not add up, and other heads may do the same work.

    Returns:
        (queries, keys) float32, in nats; not a number where the mask hides, where no key would be left, and
        in rows that were not asked for.

    Raises:
        UnmeasuredError: The encoder's cells were asked about without a step; and as ``Effects``.
        IndexError: There is no such head or step.
    """
    kind = AttentionKind(kind)
    if step is None and kind is AttentionKind.ENCODER:
        raise UnmeasuredError(
            "A query of the encoder predicts no token: name the step whose token is asked for."
        )
    if step is not None and not 0 <= step < len(run.steps):
        raise IndexError(f"There is no step {step}; this run has {len(run.steps)}, from 0.")
    cuts = cells(run, kind, layer, head, way, rows)
    found = Effects(translator, run).of([(cut,) for cut in cuts], tell)
    shape = recorded(run).layer(kind, layer).shape[1:]
    made = np.full(shape, np.nan, dtype=np.float32)
    for cut, row in zip(cuts, found, strict=True):
        assert cut.query is not None
        made[cut.query, cut.keys[0]] = float(row[cut.query if step is None else step])
    return made
