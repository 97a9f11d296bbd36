"""Several samples of one text, and the tree that they form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from transformer.decode.sampling import Sampling
from transformer.interventions import Intervention
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator


@dataclass(frozen=True)
class SharedToken:
    """A token of one or more samples that agree up to it."""

    token: str  # the piece
    token_id: int  # its id
    step: int  # the step of the output, from 0
    parent: int | None  # place in ``Draws.nodes`` of the token before it; None at the first step
    log_prob: float  # log-probability of the token under the model, in nats
    total: float  # Σ log p up to here
    samples: tuple[int, ...]  # which samples have it, from 0


@dataclass(frozen=True, eq=False)
class Draws:
    """Samples of one text."""

    translations: tuple[Translation, ...]  # one per seed, without attention
    # the tree of their tokens, step by step; at each step in the order of the first sample
    nodes: tuple[SharedToken, ...]

    @property
    def best(self) -> int:
        """The most probable sample, from 0."""
        totals = [sum(each.log_probs) for each in self.translations]
        return totals.index(max(totals))

    def leaf(self, sample: int) -> int:
        """The last node of a sample."""
        return max(place for place, node in enumerate(self.nodes) if sample in node.samples)


def draw(
    translator: Translator,  # the model
    text: str,  # what to translate
    sampling: Sampling,  # temperature, top-k and top-p; its seed is not used
    seeds: Iterable[int],  # the seeds
    interventions: Sequence[Intervention] = (),  # what to change in the run
) -> Draws:
    """Draws one translation per seed, each as ``translate(text, sample=…)`` with that seed draws it.

    Raises:
        InputError: The text is empty or too long.
        InterventionError: A change does not fit the model or the text.
        ValueError: A seed is out of range.
    """
    drawn = tuple(
        translator.translate(
            text, 1, sample=replace(sampling, seed=seed), capture=False, interventions=interventions
        )
        for seed in seeds
    )
    return Draws(drawn, shared_tokens(drawn))


def shared_tokens(translations: Sequence[Translation]) -> tuple[SharedToken, ...]:
    """The tree of the tokens of some translations of one text."""
    nodes: list[SharedToken] = []
    open_ones: dict[int | None, list[int]] = {None: list(range(len(translations)))}
    for step in range(max((len(each.steps) for each in translations), default=0)):
        found: dict[tuple[int | None, int], list[int]] = {}
        for parent, samples in open_ones.items():
            for sample in samples:
                if step < len(translations[sample].steps):
                    found.setdefault((parent, translations[sample].steps[step].token_id), []).append(sample)
        open_ones = {}
        for (parent, _), samples in found.items():
            open_ones[len(nodes)] = samples
            nodes.append(_shared(nodes, parent, translations[samples[0]], step, samples))
    return tuple(nodes)


def _shared(
    nodes: Sequence[SharedToken], parent: int | None, run: Translation, step: int, samples: Sequence[int]
) -> SharedToken:
    now, before = run.steps[step], 0.0 if parent is None else nodes[parent].total
    total = before + now.log_prob
    return SharedToken(now.token, now.token_id, step, parent, now.log_prob, total, tuple(samples))
