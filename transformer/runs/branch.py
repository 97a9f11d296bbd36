"""The run of one node of a search: its hypothesis so far, through the model once more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from transformer.decode.steps import Hypothesis, alternatives
from transformer.interventions import Choose, Intervention, Prefix
from transformer.runs.call import Run, named
from transformer.runs.translation import DecodeStep, Translation
from transformer.runs.translator import TranslationCall, Translator
from transformer.trace import Capture


@torch.inference_mode()
def branch(
    translator: Translator,  # the model that searched
    translation: Translation,  # the search, made with ``tree=True``
    node: int,  # place of the node in ``translation.tree.nodes``
    capture: Capture | None = None,  # what to record; None for attention
) -> Translation:
    """The run of a node of a search's tree: one teacher-forced pass over its prefix.

    Because of the causal mask, this pass computes the same values for every step as the search did. The audit
    of its trace compares its log-probabilities with those of the search.

    Raises:
        IndexError: The tree has no such node.
        ValueError: The translation has no tree.
    """
    tree = translation.tree
    if tree is None:
        raise ValueError("This translation has no tree; translate with tree=True.")
    if not 0 <= node < len(tree.nodes):
        raise IndexError(f"There is no node {node}: the tree has {len(tree.nodes):,}, counted from 0.")
    ids = tree.token_ids(node)
    log_probs = tuple(tree.nodes[i].log_prob for i in tree.path(node))
    changes = tuple(reached(translation.interventions, len(ids)))
    most = translator.config.max_positions
    call = TranslationCall(translator.equipment, translation.source_text, changes, {}, lambda _: most)
    run = Run(call, capture or Capture())
    distribution = call.distributions(ids, run.observer)
    hypothesis = Hypothesis(ids, log_probs, (0,) * len(ids), sum(log_probs))
    wording, best = translator.equipment.wording, zip(*alternatives(distribution), strict=True)
    steps = tuple(
        DecodeStep(piece, token_id, log_prob, named(wording, *found), 0)
        for piece, token_id, log_prob, found in zip(wording.pieces(ids), ids, log_probs, best, strict=True)
    )
    return replace(run.finished(hypothesis, steps, translation.method), notes=translator.notes)


def reached(changes: Sequence[Intervention], length: int) -> Iterator[Intervention]:
    """The changes of a run as they hold for the first ``length`` tokens of an output."""
    for each in changes:
        if isinstance(each, Choose) and each.step >= length:
            continue
        yield Prefix(each.token_ids[:length]) if isinstance(each, Prefix) else each
