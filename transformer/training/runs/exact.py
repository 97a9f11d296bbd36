"""How many validation pairs a model in training writes exactly."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from transformer.decode.request import Request
from transformer.decode.search import decode
from transformer.decode.steps import finish
from transformer.model.transformer import Transformer
from transformer.training.batches import Batch, EncodedPairs, evaluation_batches
from transformer.training.trainer import Trainer, TrainingStep


class ExactMatches:
    """Adds the share of exact matches to the steps that evaluate.

    Args:
        trainer: The trainer of the run; nothing of it changes.
        valid: Validation pairs.
        most: How many of them are translated.
    """

    def __init__(self, trainer: Trainer, valid: EncodedPairs, most: int) -> None:
        self._trainer, self._pairs = trainer, EncodedPairs(valid.source[:most], valid.target[:most])

    def measured(self, done: TrainingStep) -> TrainingStep:
        """The step, with the share if it has evaluated: of the weights with the lower validation loss."""
        if done.valid_loss is None or not len(self._pairs):
            return done
        better = done.valid_loss_average is not None and done.valid_loss_average < done.valid_loss
        with self._trainer.averaged() if better else nullcontext():
            share = exact_matches(self._trainer.model, self._pairs, self._trainer.options.batch_positions)
        return replace(done, exact=share)


def exact_matches(model: Transformer, data: EncodedPairs, batch_positions: int) -> float:
    """The share of pairs whose target greedy search writes token for token, `</s>` included.

    Args:
        model: The model; returned to its previous mode afterwards.
        data: The pairs.
        batch_positions: See `TrainingOptions`.
    """
    was_training = model.training
    model.eval()
    device = model.embedding.weight.device
    batches = (batch.to(device) for batch in evaluation_batches(data, batch_positions))
    right = sum(_right(model, batch) for batch in batches)
    model.train(was_training)
    return right / max(1, len(data))


def _right(model: Transformer, batch: Batch) -> int:
    pad = model.config.pad_id
    wanted = [tuple(token for token in row if token != pad) for row in batch.tgt_ids.tolist()]
    found = finish(decode(Request(model, batch.src_ids), [len(row) for row in wanted]))
    return sum(each.token_ids == row for each, row in zip(found, wanted, strict=True))
