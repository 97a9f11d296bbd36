"""What a key did: the change of a token's log-probability when the key is taken away, by running again.

Four questions with four answers. *hidden*: the key's score is −∞, and the other keys share its weight.
*zeroed*: its weight stays, its value is 0. *mean*: its value is the mean of the values that the query sees.
*left out*: the source word is not in the text, so that other tokens move (``left_out``). Effects do not add.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from explorer.lenses.measures.stream import Tell, UnmeasuredError, recorded, silent
from transformer.batches import Passes
from transformer.model.sites import AttentionKind, Side
from transformer.model.transformer import Transformer
from transformer.model.watching.observer import Attended, AttentionInputs, Bystander
from transformer.run import Translation
from transformer.trace.view import Array
from transformer.translator import Translator

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

    @property
    def side(self) -> Side:
        """The first stack that computes something else."""
        return "encoder" if self.kind is AttentionKind.ENCODER else "decoder"


class Cuts(Bystander):
    """Takes keys away in each row of a batch, in its own places."""

    def __init__(self, runs: Sequence[Sequence[Cut]]) -> None:
        self._runs = runs

    def attention(self, asked: AttentionInputs) -> Attended:
        """The output of fused attention, and in rows with cuts here the output without the keys."""
        found = super().attention(asked)
        rows = [row for row, cuts in enumerate(self._runs) if any(_here(cut, asked) for cut in cuts)]
        if not rows:
            return found
        output, part = found.output.clone(), _of_rows(asked, rows)
        shape = len(rows), *asked.query.shape[1:3], asked.key.shape[2]
        taken = {way: torch.zeros(shape, dtype=torch.bool, device=asked.query.device) for way in WAYS}
        for place, row in enumerate(rows):
            for cut in filter(lambda cut: _here(cut, asked), self._runs[row]):
                heads = slice(None) if cut.head is None else slice(cut.head, cut.head + 1)
                queries = slice(None) if cut.query is None else slice(cut.query, cut.query + 1)
                for key in cut.keys:
                    taken[cut.way][place, heads, queries, key] = True
        output[rows] = _without(part, taken).to(output.dtype)
        return Attended(output)


def _here(cut: Cut, asked: AttentionInputs) -> bool:
    return cut.kind is asked.kind and cut.layer in (None, asked.layer)


def _of_rows(asked: AttentionInputs, rows: list[int]) -> AttentionInputs:
    """The same attention for some rows of the batch."""
    query, key, value = (each[rows] for each in (asked.query, asked.key, asked.value))
    return AttentionInputs(asked.kind, asked.layer, query, key, value, asked.mask, asked.rule, asked.score)


def _without(asked: AttentionInputs, taken: dict[Way, Tensor]) -> Tensor:
    """(rows, heads, queries, d_head): the output without keys; not a number for a query that sees none."""
    scores, visible = asked.scores().float(), asked.visible()
    if visible is None:
        visible = torch.ones_like(taken["hidden"])
    visible = visible.expand_as(scores)
    weights = scores.masked_fill(~visible | taken["hidden"], -torch.inf).softmax(-1)
    values = asked.value.float()
    output = weights.masked_fill(taken["zeroed"] | taken["mean"], 0.0) @ values
    if bool(taken["mean"].any()):
        share = (weights * taken["mean"]).sum(-1, keepdim=True)
        output = output + share * (visible / visible.sum(-1, keepdim=True)).to(values) @ values
    return output


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
        target = target or run.target_ids
        self._passes = Passes(self._model, self._source, target, Cuts, AT_ONCE)
        self.base = self._passes.log_probs([()])[0]
        """(target,) float32: log-probability of every token without a cut, in nats."""

    def of(self, cuts: Iterable[Sequence[Cut]], tell: Tell = silent) -> Tensor:
        """(runs, target) Δ log p of every token, float32."""
        runs, found = list(cuts), [torch.zeros(0, len(self.base))]
        for part in self.parts(runs):
            found.append(part)
            tell(sum(map(len, found)) / len(runs))
        return torch.cat(found)

    def parts(self, cuts: Sequence[Sequence[Cut]]) -> Iterator[Tensor]:
        """As ``of``, in parts of as many runs as fit a pass."""
        for part in self._passes.parts(cuts):
            yield part - self.base

    def left_out(self, positions: Iterable[int]) -> Tensor:
        """(target,) Δ log p of the same translation, if some source tokens are not in the text."""
        gone = set(positions)
        kept = [each for place, each in enumerate(self._source) if place not in gone]
        if len(kept) < 2:
            raise UnmeasuredError("Without these tokens, no source is left.")
        passes = Passes(self._model, kept, self._run.target_ids, Cuts)
        return passes.log_probs([()])[0] - self.base


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
