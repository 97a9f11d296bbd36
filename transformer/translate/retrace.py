"""A finished translation run through the model once more, to record what was not kept the first time."""

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

    With the causal mask that pass computes for every step what decoding computed; the audit of the new
    trace holds its log-probabilities against those of the decode.

    Args:
        translator: The model that made the translation.
        translation: Made without hooks; nothing in it changes.
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
