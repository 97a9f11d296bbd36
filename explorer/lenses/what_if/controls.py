"""What a change of heads is held against: other heads, an untrained twin, mean outputs."""

import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.config import AttentionKind, ModelConfig
from transformer.interventions import Intervention, InterventionError, Patch
from transformer.model import EncoderDecoder
from transformer.run import Translation
from transformer.storage.directory import NETWORKS
from transformer.text.kinds import at_least
from transformer.translator import InputError, Translator

COUNT = 20
"""Most controls: if there are more, this many are drawn."""
_LOCK = threading.Lock()
"""There is one global generator; one user at a time, so that a seed fixes what is drawn."""


class RandomHeads(NamedTuple):
    """Δ log p of a whole given output by a change, and by the same change at other heads, in nats."""

    change: Intervention  # the change
    controls: tuple[Intervention, ...]  # the same change at other heads of its layer
    effect: float  # of the change; negative if the output became less probable
    effects: NDArray[np.float64]  # (controls,) of each control in its place
    complete: bool  # whether the controls are all that there are, not a random sample of them

    @property
    def as_large(self) -> int:
        """Number of controls that move the output's log-probability at least as far as the change does."""
        return int((np.abs(self.effects) >= abs(self.effect)).sum())


def random_heads(
    translator: Translator,
    text: str,
    target: str | Sequence[int] | Sequence[str],
    change: Intervention,
    beside: Iterable[Intervention] = (),
    count: int = COUNT,
    seed: int = 0,
) -> RandomHeads:
    """Measures a change of heads, and the same change at other heads of the same kind and layer.

    InputError for a text, InterventionError for a change, for which there is no such control.
    """
    controls, complete = same_change_elsewhere(change, translator.config, count, seed)
    others = tuple(beside)

    def log_p(*changes: Intervention) -> float:
        done = translator.force(text, target, capture=False, interventions=(*others, *changes))
        return math.fsum(done.log_probs)

    base = log_p()
    effect, *effects = (log_p(each) - base for each in (change, *controls))
    return RandomHeads(change, controls, effect, np.array(effects), complete)


def same_change_elsewhere(
    change: Intervention, config: ModelConfig, count: int = COUNT, seed: int = 0
) -> tuple[tuple[Intervention, ...], bool]:
    """A change at as many other heads of its layer, and whether these are all; errors as ``random_heads``."""
    at_least(1).check("count", count)
    if change.part not in ("scores", "weights", "heads"):
        raise InterventionError(
            f"Random heads are a control for a change of heads, not for this one: {change}."
        )
    own = change.heads(config.n_heads)
    free = [head for head in range(config.n_heads) if head not in own]
    if not (ways := math.comb(len(free), len(own))):
        raise InterventionError(
            f"A control needs {len(own)} other heads of the same layer, and there are {len(free)}."
        )
    drawn: Iterable[tuple[int, ...]] = combinations(free, len(own))
    if ways > count:
        generator = torch.Generator().manual_seed(seed)
        different: dict[tuple[int, ...], None] = {}
        while len(different) < count:
            order = torch.randperm(len(free), generator=generator)[: len(own)].tolist()
            different[tuple(sorted(free[at] for at in order))] = None
        drawn = different
    one: Any = change
    patch = isinstance(change, Patch)
    moves = ({"place": f"{one.hook}.{heads[0]}"} if patch else {"head": heads} for heads in drawn)
    return tuple(replace(one, **move) for move in moves), ways <= count


def untrained_twin(translator: Translator, seed: int) -> Translator:
    """A model of the same config with a seed's first weights; draws nothing from the global generator."""
    with _LOCK, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = NETWORKS[type(translator.config)](translator.config)
    assert isinstance(model, EncoderDecoder)
    name = f"{translator.name}, untrained twin, seed {seed}"
    return Translator(model, translator.tokenizer, name=name, rules=translator.rules)


def same_tokens(translator: Translator, translation: Translation) -> Translation:
    """Runs a finished translation's tokens through another model; InputError if they are too many for it."""
    return translator.force(translation.source_text, tuple(step.token_id for step in translation.steps))


def mean_outputs(
    translator: Translator, pairs: Iterable[tuple[str, str | None]]
) -> tuple[dict[AttentionKind, Tensor], int]:
    """By kind, every head's mean output over a sample; and how many sentences were read, else ValueError."""
    sums: dict[AttentionKind, Tensor] = {}
    rows, read = dict.fromkeys(translator.config.sites, 0), 0
    for source, target in pairs:
        try:
            run = translator.translate(source) if target is None else translator.force(source, target)
        except InputError:
            continue
        read += 1
        for kind, layers in run.trace.layers.items():
            outputs = torch.stack([each.output for each in layers]).double()  # (layers, heads, rows, d_head)
            sums[kind] = sums.get(kind, 0) + outputs.sum(2)
            rows[kind] += outputs.shape[2]
    if not read:
        raise ValueError("No sentence could be read.")
    return {kind: (total / rows[kind]).float() for kind, total in sums.items()}, read
