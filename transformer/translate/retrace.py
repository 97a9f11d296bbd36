"""Runs a finished translation through the model again, to record what the first run did not keep."""

from __future__ import annotations

from dataclasses import replace

import torch

from transformer.decode.replay import replay
from transformer.decode.request import Request
from transformer.model.sites import Place
from transformer.trace.audit import audit
from transformer.trace.recorder import Capture, Recorder
from transformer.trace.records import AttentionTrace
from transformer.trace.report import AuditReport
from transformer.translate.translation import Translation
from transformer.translate.translator import Translator

EVERYTHING = Capture(residual=True)


@torch.inference_mode()
def retrace(translator: Translator, translation: Translation, capture: Capture = EVERYTHING) -> Translation:
    """The same translation with a trace of one teacher-forced pass over it (section 3.1, the masked decoder).

    Because of the causal mask, this pass computes the same values for every step as decoding did. The audit
    of the new trace compares its log-probabilities with those of the decode.

    Args:
        translator: The model that made the translation.
        translation: Made without hooks; it is not changed.
        capture: What to record; by default the residual stream too.

    Raises:
        InputError: The text is empty or too long for this model.
    """
    model = translator.model
    recorder = Recorder(capture)
    src_ids = (*translator.ids(translation.source_text), translator.config.eos_id)
    request = Request(model, torch.tensor([src_ids], device=translator.device), recorder)
    target_ids = tuple(step.token_id for step in translation.steps)
    distribution = replay(model, request.memory, target_ids, observer=recorder)
    chosen = torch.tensor(target_ids, device=distribution.device)[:, None]
    log_probs = tuple(distribution.gather(1, chosen)[:, 0].tolist())

    def auditor(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
        return audit(trace, places, translation.log_probs, log_probs)

    return replace(translation, attention=recorder.trace(auditor))
