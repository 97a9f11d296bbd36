"""What a key did: the change of a token's log-probability when the key is taken away, by running
again.

Four questions with four answers. *hidden*: the key's score is −∞, and the other keys share its
weight. *zeroed*: its weight stays, its value is 0. *mean*: its value is the mean of the values that
the query sees. *Rewired*: the values stay, and the head has other weights. Effects do not add.
(Without the word in the text, other tokens move: that is the intervention ``drop_source``.)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
import torch
from torch import Tensor

from explorer.lenses.measures.stream import (
    Tell,
    UnmeasuredError,
    needs_predictions,
    needs_step,
    recorded,
    silent,
)
from explorer.lenses.words.groups import reading_groups
from transformer.batches import token_log_probs
from transformer.config import AttentionKind, ModelConfig
from transformer.hooks import At, Edit, Hooks
from transformer.model import EncoderDecoder
from transformer.run import Translation
from transformer.text.words import Group
from transformer.trace import Kind
from transformer.translator import Translator
from transformer.view import Array, HeadMap, Window, sealed

Way = Literal["hidden", "zeroed", "mean"]
WAYS: tuple[Way, ...] = get_args(Way)
Step = int | Literal["all"] | None
AT_ONCE = 1024
"""Tokens of a pass: few enough that progress is told, and somebody who waits can leave, within a
second."""
ON_ALL = "effect_on_all"
"""Measure of the encoder's cells: Σ_t |Δ log p(y_t)|, because none of its queries predicts a
token."""
LEAST = 0.1
"""Effect in nats that is drawn in full colour at least, so that a map of small effects stays
pale."""
T = TypeVar("T")
Edits = Mapping[str, Sequence[Edit]]


class Cut(NamedTuple):
    """Keys that are taken away in a run."""

    kind: AttentionKind
    keys: tuple[int, ...]  # positions of the keys, from 0
    way: Way = "hidden"
    layer: int | None = None  # in this layer, from 0; None for all
    head: int | None = None  # in this head, from 0; None for all
    query: int | None = None  # for this query, from 0; None for all
    after: int = -1  # if for all, only for the queries after this one


Cuts = Sequence[tuple[int, Cut]]
"""What is taken away in some rows of a batch, each with its row."""


def _cut_edits(runs: Sequence[Sequence[Cut]], config: ModelConfig) -> Edits:
    """Edits that take keys away in each row of a batch.

    A query that sees no key any more gets no number.
    """
    edits: dict[str, list[Edit]] = {}
    every = [(row, cut) for row, several in enumerate(runs) for cut in several]
    for kind, site in config.sites.items():
        for layer in range(site.n_layers):
            cuts = [
                (row, cut) for row, cut in every if cut.kind is kind and cut.layer in (None, layer)
            ]
            if cuts:
                path = site.sublayer(layer).path
                edits[f"{path}.scores"] = [partial(_hidden, cuts)]
                edits[f"{path}.weights"] = [partial(_without, cuts)]
    return edits


def _places(cuts: Cuts, like: Tensor, *ways: Way) -> Tensor:
    """(rows, heads, queries, keys) bool: what cuts of rows of a batch take away in these ways."""
    places = torch.zeros_like(like, dtype=torch.bool)
    for row, cut in cuts:
        heads = _only(cut.head)
        queries = slice(cut.after + 1, None) if cut.query is None else _only(cut.query)
        places[row, heads, queries, list(cut.keys)] |= cut.way in ways
    return places


def _only(place: int | None) -> slice:
    """One place of an axis, or all."""
    return slice(None) if place is None else slice(place, place + 1)


def _hidden(cuts: Cuts, scores: Tensor, at: At) -> Tensor:
    return scores.masked_fill(_places(cuts, scores, "hidden"), -torch.inf)


def _without(cuts: Cuts, weights: Tensor, at: At) -> Tensor:
    rest = weights.masked_fill(_places(cuts, weights, "zeroed", "mean"), 0.0)
    mean = _places(cuts, weights, "mean")
    if not bool(mean.any()):
        return rest
    assert at.mask is not None
    visible = at.mask.expand_as(weights).to(weights)
    return rest + (weights * mean).sum(-1, keepdim=True) * visible / visible.sum(-1, keepdim=True)


class Effects:
    """Effects in one run: Δ log p of its tokens, in nats; negative where a token needs the cell."""

    def __init__(
        self, translator: Translator, run: Translation, target: Sequence[int] = ()
    ) -> None:
        """Of a target's ids, or the run's own; UnmeasuredError as ``recorded``."""
        recorded(run)
        self._model = translator.model
        self._device = translator.device
        self.places = needs_predictions(run)
        """The positions of the tokens, from 0: steps of the output, or masked tokens of a text."""
        self._target = target or tuple(token.token_id for token in run.predictions.values())
        self._ids = {
            side: torch.tensor([ids], device=self._device)
            for side, ids in translator.ids_of(run).items()
        }
        if run.config.writes:
            self._ids["decoder"][0, 1:] = torch.tensor(self._target[:-1])
        (self.base,) = self._log_probs()
        """(target,) float32: log-probability of every token without a change, in nats."""

    @torch.inference_mode()
    def _log_probs(
        self,
        runs: Sequence[Any] = ((),),
        edits: Callable[[Sequence[Any]], Edits] = lambda runs: {},
        tell: Tell = silent,
    ) -> Tensor:
        """(runs, tokens) log-probabilities; a pass takes as many runs as fit.

        Without edits, of one run.
        """
        model = self._model
        target = torch.tensor([self._target], device=self._device)
        memory = self._memory()
        rows = max(1, AT_ONCE // max(ids.shape[1] for ids in self._ids.values()))
        passes = [torch.zeros(0, target.shape[1])]
        for start in range(0, len(runs), rows):
            batch = runs[start : start + rows]
            hooks = Hooks((), edits(batch))
            count = len(batch)
            features = self._features(count, hooks, memory)[:, list(self.places)].flatten(0, 1)
            log_probs = token_log_probs(model, features, target.expand(count, -1).flatten())
            passes.append(log_probs.view(count, -1).cpu())
            tell((start + count) / len(runs))
        return torch.cat(passes)

    def _memory(self) -> Tensor | None:
        """(1, source, d_model) what the encoder wrote without a change; None without one."""
        if not isinstance(self._model, EncoderDecoder):
            return None
        return self._model.encode(self._ids["encoder"])

    def _features(self, count: int, hooks: Hooks, memory: Tensor | None) -> Tensor:
        """(count, length, d_model) the features of a batch; an unchanged memory is not made
        again."""
        model = self._model
        ids = {side: row.expand(count, -1) for side, row in self._ids.items()}
        changes_encoder = any(name.startswith("encoder.") for name in hooks.edits)
        if memory is None or changes_encoder or not isinstance(model, EncoderDecoder):
            return model.read(ids, hooks)
        return model.decode(ids["decoder"], memory.expand(count, -1, -1), hooks=hooks)

    def changed(
        self, runs: Sequence[T], edits: Callable[[Sequence[T]], Edits], tell: Tell = silent
    ) -> Tensor:
        """(runs, target) Δ log p of every token, float32; `edits` makes those of some runs."""
        return self._log_probs(runs, edits, tell) - self.base

    def of(self, cuts: Iterable[Sequence[Cut]], tell: Tell = silent) -> Tensor:
        """(runs, target) Δ log p of every token, float32, without what each run's cuts take."""
        return self.changed(list(cuts), partial(_cut_edits, config=self._model.config), tell)


def on_difference(
    translator: Translator, run: Translation, step: int, against: int, tell: Tell = silent
) -> Array:
    """Change of z_A − z_B at a step, each key of the run's last kind hidden from all its heads.

    As ``without`` hides. A is the token of the step. z_A − z_B = log p_A − log p_B, so the two
    effects on log p are subtracted. Returns (keys,) float32, in nats; UnmeasuredError as
    ``Effects``.
    """
    kind = run.config.last_kind
    cuts = [(without(run, kind, (key,)),) for key in range(len(run.labels(kind).keys))]
    needs_step(run, step)
    rival = tuple(
        against if place == step else token.token_id for place, token in run.predictions.items()
    )
    effects = Effects(translator, run)
    column = effects.places.index(step)
    of_token = effects.of(cuts, lambda share: tell(share / 2))[:, column]
    of_rival = Effects(translator, run, rival).of(cuts, lambda share: tell((1 + share) / 2))
    return np.asarray(of_token - of_rival[:, column], np.float32)


def effect(
    translator: Translator,
    run: Translation,
    kind: Kind,
    layer: int,
    head: int | None,  # None for all heads of the layer
    way: Way = "hidden",
    # whose token is asked for; None: the one that the query predicts; "all": Σ |Δ log p|
    step: Step = None,
    rows: Iterable[int] | None = None,  # queries, from 0; None for all
    tell: Tell = silent,
    keys: Iterable[int] | None = None,  # None for all
) -> Array:
    """Δ log p = log p(y | without the cell) − log p(y) for each cell of a head, one run for each.

    Returns (queries, keys) float32, in nats; NaN where the mask hides, no key would be left, or
    nobody asked. UnmeasuredError as ``Effects``, and for the encoder without a step; IndexError
    without such a head or step.
    """
    kind = AttentionKind(kind)
    if step is None and kind is AttentionKind.ENCODER:
        raise UnmeasuredError(
            "A query of the encoder predicts no token: name the step whose token is asked for."
        )
    if step != "all":
        needs_step(run, step)
    mask = recorded(run).layer(kind, layer, head).mask().numpy()
    every_row, every_key = (range(length) for length in mask.shape)
    grid = product(every_row if rows is None else rows, every_key if keys is None else keys)
    cells = [(query, key) for query, key in grid if mask[query, key]]
    cuts = [
        (Cut(kind=kind, keys=(key,), way=way, layer=layer, head=head, query=query),)
        for query, key in cells
    ]
    effects = np.full(mask.shape, np.nan, dtype=np.float32)
    of_run = Effects(translator, run)
    for (query, key), moved in zip(cells, of_run.of(cuts, tell), strict=True):
        if step == "all":
            effects[query, key] = float(moved.abs().sum())
        else:
            effects[query, key] = float(moved[of_run.places.index(query if step is None else step)])
    return effects


def effect_in(
    translator: Translator,
    run: Translation,
    kind: Kind,
    layer: int,
    head: int,
    window: Window,
    tell: Tell = silent,
) -> Array:
    """(queries, keys) the effects of a window's cells; the encoder's are Σ_t |Δ log p(y_t)|."""
    rows = range(window.query_start, window.query_stop)
    keys = range(window.key_start, window.key_stop)
    step: Step = "all" if AttentionKind(kind) is AttentionKind.ENCODER else None
    effects = effect(translator, run, kind, layer, head, step=step, rows=rows, tell=tell, keys=keys)
    return effects[window.queries, window.keys]


def head_effects(
    translator: Translator, run: Translation, kind: Kind, step: int, tell: Tell = silent
) -> Array:
    """(layers, heads) Δ log p of a step's token without each head of a kind: its weights are 0 in
    every row.

    One run for each head, float32, in nats; UnmeasuredError as ``Effects``.
    """
    kind = AttentionKind(kind)
    needs_step(run, step)
    keys = tuple(range(len(run.labels(kind).keys)))
    size = run.config.sizes[kind]
    off = [
        (Cut(kind=kind, keys=keys, way="zeroed", layer=layer, head=head),)
        for layer, head in np.ndindex(size)
    ]
    effects = Effects(translator, run)
    moved = effects.of(off, tell)[:, effects.places.index(step)]
    return np.asarray(moved, np.float32).reshape(size)


def effect_map(view: HeadMap, effects: Array) -> HeadMap:
    """A map, or a window of one, with shares of its largest effect (``effect_in``) for weights."""
    known: Array = np.nan_to_num(np.abs(effects))
    measure = ON_ALL if view.predicted_tokens is None else "effect"
    strength: Array = known / np.float32(max(float(known.max(initial=0.0)), LEAST))
    report = replace(view.audit, claim=from_runs(int(view.mask.sum())))
    return sealed(replace(view, weights=strength, measure=measure, measured=effects), report)


def from_runs(effects: int, series: int = 1) -> str:
    """What the badge of effects says: how many runs were made for them.

    One for each effect, and in each series (each token that is asked for) one with nothing taken
    away.
    """
    return f"from {series * (effects + 1):,} runs"


def without(
    run: Translation,
    kind: AttentionKind,
    keys: Sequence[int],  # from 0
    way: Way = "hidden",
    layer: int | None = None,  # from 0; None for all
) -> Cut:
    """Keys that no query sees; under a causal mask no later query, so that each row has a key."""
    after = max(keys) if run.config.sites[kind].causal else -1
    return Cut(kind=kind, keys=tuple(keys), way=way, layer=layer, after=after)


def key_words(run: Translation, kind: Kind | None = None) -> tuple[Group, ...]:
    """The keys of a kind (None: the last of the run) as words, special tokens by themselves."""
    return reading_groups(run.labels(run.config.last_kind if kind is None else kind).keys)


def word_effect(
    translator: Translator,
    run: Translation,
    kind: Kind | None = None,  # whose keys are taken away; None for the last kind of the run
    way: Way = "hidden",
    layer: int | None = None,
    tell: Tell = silent,
) -> Array:
    """Δ log p of every token without each word among the keys: all its pieces, in every head.

    Returns (tokens, words) float32, in nats; the tokens are ``run.predictions``, the words those of
    ``key_words``. UnmeasuredError as ``Effects``; IndexError if there is no such layer.
    """
    trace = recorded(run)
    kind = run.config.last_kind if kind is None else AttentionKind(kind)
    if layer is not None:
        trace.layer(kind, layer)
    words = key_words(run, kind)
    cuts = [(without(run, kind, tuple(word.indices), way, layer),) for word in words]
    return np.asarray(Effects(translator, run).of(cuts, tell).T, np.float32)


def rewired(
    translator: Translator, run: Translation, kind: Kind, layer: int, head: int, maps: Array
) -> Array:
    """Δ log p of every token with other weights (runs, queries, keys) of a head, whose values stay.

    Returns (runs, steps) float32, in nats (after Jain and Wallace 2019, Wiegreffe and Pinter 2019).
    UnmeasuredError as ``Effects``; IndexError if there is no such head.
    """
    record = recorded(run).layer(kind, layer, head)
    outputs = torch.as_tensor(np.asarray(maps, dtype=np.float32)) @ record.values(head).float()
    place = f"{run.config.sites[AttentionKind(kind)].sublayer(layer).path}.heads"

    def edit(runs: Sequence[Tensor], original: Tensor, at: At) -> Tensor:
        changed = original.clone()
        changed[:, head] = torch.stack([*runs]).to(original)
        return changed

    def edits(runs: Sequence[Tensor]) -> Edits:
        return {place: [partial(edit, runs)]}

    return np.asarray(Effects(translator, run).changed([*outputs], edits), np.float32)
