"""A model beside transformers' model of the same directory: comparisons that every family
passes."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from transformer import AttentionKind, Capture, Translator
from transformer.batches import hypotheses
from transformer.beam import beam_search
from transformer.decoding import DecodingState, finish
from transformer.requests import Request
from transformer.run import Translation

NEAR = 1e-4
MARGIN = 1e-3
"""If the reference prefers a token by less than this, either choice is right."""


@dataclass(frozen=True)
class Pair:
    """The same directory, opened by this package and by the reference, and one text for both."""

    translator: Translator
    model: Any
    text: str  # as this package is given it
    source: tuple[int, ...]  # the reference's ids of it
    start: int  # id of the token that the decoder reads first
    first: int | None = None  # id of the token that the output begins with

    @property
    def rows(self) -> torch.Tensor:
        return torch.tensor([self.source])

    def generate(self, **options: Any) -> Any:
        asked = {
            "forced_bos_token_id": self.first,
            "do_sample": False,
            "return_dict_in_generate": True,
        }
        return self.model.generate(self.rows, use_cache=False, **asked | options)


def largest(ours: Any, theirs: torch.Tensor) -> float:
    return float((torch.as_tensor(ours) - theirs).abs().max())


def logits(translator: Translator, ids: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
    """The model's own, computed where it is."""
    return translator.model(ids.to(translator.device), read.to(translator.device)).cpu()


def check_forward(pair: Pair, target: str) -> Translation:
    """Ids, logits, encoder output, every attention, and the audit."""
    forced = pair.translator.force(pair.text, target, capture=Capture(residual=True))
    assert (*pair.translator.ids(pair.text), pair.translator.config.eos_id) == pair.source
    if pair.first is not None:
        assert forced.steps[0].token_id == pair.first
    read = torch.tensor([[pair.start, *(step.token_id for step in forced.steps[:-1])]])
    with torch.no_grad():
        expected = pair.model(input_ids=pair.rows, decoder_input_ids=read, output_attentions=True)
        assert largest(logits(pair.translator, pair.rows, read), expected.logits) <= NEAR
        memory = pair.translator.model.encode(pair.rows.to(pair.translator.device)).cpu()
    assert largest(memory, expected.encoder_last_hidden_state) <= NEAR
    theirs = {
        AttentionKind.ENCODER: expected.encoder_attentions,
        AttentionKind.DECODER: expected.decoder_attentions,
        AttentionKind.CROSS: expected.cross_attentions,
    }
    for kind, layers in theirs.items():
        assert len(forced.attention.layers[kind]) == len(layers)
        for layer, weights in enumerate(layers):
            assert largest(forced.attention.weights(kind, layer), weights[0]) <= NEAR
    assert forced.attention.audit().passed
    return forced


def check_greedy(pair: Pair, least: int = 2) -> Translation:
    """What greedy search writes, as long as the reference has a margin: more than ``least``
    tokens."""
    expected = pair.generate(num_beams=1, output_logits=True)
    margins = [float(row[0].topk(2).values.diff().abs()) for row in expected.logits]
    begun = pair.first is not None
    unsure = (step for step, each in enumerate(margins) if step >= begun and each < MARGIN)
    sure = next(unsure, len(margins))
    ours = pair.translator.translate(pair.text, beam_size=1)
    written = [step.token_id for step in ours.steps]
    assert sure > least
    assert written[:sure] == expected.sequences[0, 1:].tolist()[:sure]
    for step, logits in list(zip(ours.steps, expected.logits, strict=False))[begun:sure]:
        assert step.log_prob == pytest.approx(
            float(logits[0].log_softmax(-1)[step.token_id]), abs=NEAR
        )
    assert ours.attention.audit().passed
    (other,) = hypotheses(pair.translator, [pair.text], beam_size=1)
    assert list(other.token_ids) == written
    return ours


def check_beam(pair: Pair, size: int = 4) -> Translation:
    """What a beam finds, where the reference prefers it by a margin, and its score."""
    expected = pair.generate(num_beams=size, output_scores=True, num_return_sequences=2)
    scores = expected.sequences_scores.tolist()
    ours = pair.translator.translate(pair.text, beam_size=size)
    if scores[0] - scores[1] > MARGIN:
        written = expected.sequences[0, 1:].tolist()
        eos = pair.translator.config.eos_id
        end = written.index(eos) + 1 if eos in written else len(written)
        assert [step.token_id for step in ours.steps] == written[:end]
    request = DecodingState(pair.translator.model, pair.rows.to(pair.translator.device))
    rules = Request(pair.translator, pair.text).rules
    (found,) = finish(beam_search(request, rules.max_length or 19, size, rules))
    assert found.score == pytest.approx(scores[0], abs=NEAR)
    return ours
