"""Runs a finished translation through the model again, to record what the first run did not keep."""

from __future__ import annotations

from dataclasses import replace

import torch

from transformer.decode.steps import Hypothesis
from transformer.runs.call import Run, chosen
from transformer.runs.translation import Translation
from transformer.runs.translator import TranslationCall, Translator
from transformer.trace import Capture

EVERYTHING = Capture(residual=True)


@torch.inference_mode()
def retrace(
    translator: Translator,  # the model that made the translation
    translation: Translation,  # made without hooks, and with any interventions; it is not changed
    capture: Capture = EVERYTHING,  # what to record; by default the residual stream too
) -> Translation:
    """The same translation with a trace of one teacher-forced pass over it (section 3.1, the masked decoder).

    Because of the causal mask, this pass computes the same values for every step as decoding did. The audit
    of the new trace compares its log-probabilities with those of the decode.

    Raises:
        InputError: The text is empty or too long for this model.
        InterventionError: A change of the translation does not fit this model.
    """
    ids, steps = translation.target_ids, translation.steps
    given = len(ids) if translation.method == "forced" else None
    most = given or translator.config.max_positions
    changes = translation.interventions
    call = TranslationCall(translator.equipment, translation.source_text, changes, {}, lambda _: most, given)
    run = Run(call, capture)
    again, parents = chosen(call.distributions(ids, run.observer), ids), tuple(step.parent for step in steps)
    decoded = Hypothesis(ids, translation.log_probs, parents, sum(translation.log_probs))
    return replace(translation, attention=run.trace(decoded, lambda: again))
