"""Sampling: the next token is drawn at random; several samples of one text, and the tree that they
form."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from torch import Tensor

from transformer.beam import TokenTree, TreeNode
from transformer.decoding import Choice
from transformer.run import Translation
from transformer.text.kinds import Checked, above, at_least, whole

MIN_TEMPERATURE = 0.001
"""Lower temperatures only imitate greedy search, and the lowest of them give NaN."""
_TEMPERATURE = replace(
    at_least(MIN_TEMPERATURE),
    said=f"at least {MIN_TEMPERATURE}; at 0 the best token is always taken: that is greedy search, so leave "
    "sampling out",
)


@dataclass(frozen=True)
class Sampling(Checked):
    """Settings for drawing the next token (top-p: Holtzman et al. 2020; top-k: Fan et al. 2018).

    ValueError if a value is out of range.
    """

    temperature: Annotated[float, _TEMPERATURE] = 1.0  # divides the logits
    top_k: Annotated[int, whole(1)] | None = None  # keep the k most probable tokens; None keeps all
    top_p: Annotated[float, above(0, 1)] | None = (
        None  # keep the fewest tokens that reach p; None keeps all
    )
    seed: Annotated[int, whole(0, most=2**63 - 1)] = 0  # the same seed gives the same translation

    def chooser(self) -> Choice:
        """A function that chooses tokens, with its own random generator."""
        generator = torch.Generator().manual_seed(self.seed)

        def choose(log_probs: Tensor) -> Tensor:
            probabilities = self.filtered(log_probs).cpu()
            return torch.multinomial(probabilities, 1, generator=generator)[:, 0].to(
                log_probs.device
            )

        return choose

    def filtered(self, log_probs: Tensor) -> Tensor:
        """(rows, vocab_size) probabilities after temperature, top-k and top-p."""
        logits = log_probs / self.temperature
        if self.top_k is not None:
            threshold = logits.topk(min(self.top_k, logits.shape[-1])).values[:, -1:]
            logits = logits.masked_fill(logits < threshold, -torch.inf)
        probabilities = logits.softmax(-1)
        if self.top_p is not None:
            ordered, order = probabilities.sort(-1, descending=True)
            dropped = ordered.cumsum(-1) - ordered >= self.top_p
            probabilities = probabilities.masked_fill(dropped.scatter(-1, order, dropped), 0.0)
            probabilities = probabilities / probabilities.sum(-1, keepdim=True)
        return probabilities


@dataclass(frozen=True, eq=False, repr=False)
class Draws(TokenTree):
    """Samples of one text; at each step of the tree, the tokens after one token are beside each
    other."""

    translations: tuple[Translation, ...]  # one per seed, without attention
    leaves: tuple[int, ...]  # the last node of each
    best: int  # the most probable one, from 0


def draw(
    translate: Callable[
        ..., Translation
    ],  # translates one text with changes: options of ``translate``
    sampling: Sampling,  # temperature, top-k and top-p; its seed is not used
    seeds: Iterable[int],
) -> Draws:
    """One sample per seed, each as ``translate`` with that seed draws it; raises as it does."""
    runs = tuple(
        translate(beam_size=1, sample=replace(sampling, seed=i), capture=False) for i in seeds
    )
    nodes = list[TreeNode]()
    newest: list[int | None] = [None] * len(runs)  # the place of each sample's last token
    for step in range(max((len(run.steps) for run in runs), default=0)):
        groups: dict[tuple[int | None, int], list[int]] = {}
        for i in sorted(range(len(runs)), key=lambda i: newest[i] or 0):
            if step < len(runs[i].steps):
                groups.setdefault((newest[i], runs[i].steps[step].token_id), []).append(i)
        for (parent, token_id), samples in groups.items():
            written = runs[samples[0]].steps[step]
            before = 0.0 if parent is None else nodes[parent].total
            for i in samples:
                newest[i] = len(nodes)
            nodes.append(
                TreeNode(
                    token_id=token_id,
                    token=written.token,
                    step=step,
                    parent=parent,
                    log_prob=written.log_prob,
                    total=before + written.log_prob,
                    samples=tuple(samples),
                )
            )
    best = max(range(len(runs)), key=lambda i: sum(runs[i].log_probs), default=0)
    leaves = tuple(place for place in newest if place is not None)
    return Draws(nodes=tuple(nodes), translations=runs, leaves=leaves, best=best)
