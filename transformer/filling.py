"""What an encoder alone reads in one pass, and what it predicts for masked words (Devlin et al.
2019, section 3.1)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from transformer.decoding import AnyModel, candidates_of, numbers
from transformer.hooks import HookFunctions, Hooks
from transformer.interventions.edits import Change
from transformer.reader import Reader
from transformer.run import Alternative, DecodeStep
from transformer.trace import hooks_of

MOST_POSITIONS = 4096
"""Most positions of the texts of a pass, in each of which another token is masked."""


@dataclass(frozen=True, kw_only=True)
class MaskedText:
    """A text as an encoder reads it, and the predictions for its words."""

    reader: Reader  # the model's vocabulary
    model: AnyModel  # the network, which stays where it was when it was asked
    token_ids: tuple[int, ...]  # of the text, special ones included
    pieces: tuple[str, ...]  # their names
    changes: tuple[Change, ...] = ()  # what is changed in every pass
    functions: Mapping[str, HookFunctions] = field(default_factory=dict)  # of a user, by name

    @property
    def masked(self) -> tuple[int, ...]:
        """The positions whose tokens are masked."""
        mask_id = self.reader.config.mask_id
        return tuple(i for i, number in enumerate(self.token_ids) if number == mask_id)

    @torch.inference_mode()
    def features(self, rows: Sequence[Sequence[int]], hooks: Hooks | None) -> Tensor:
        """(rows, source, d_model) the encoder's output for ids of one length."""
        ids = torch.tensor(rows, device=self.model.embedding.weight.device)
        return self.model.read({"encoder": ids}, hooks)

    @torch.inference_mode()
    def fill(self, features: Tensor, position: int, hooks: Hooks | None) -> DecodeStep:
        """What an output (source, d_model) predicts at a position: the token that was read there,
        or for a mask the most probable one.

        OverflowedError if the model's numbers overflow.
        """
        row = features[None, position : position + 1]
        logits = self.model.logits(row, hooks, position)
        distribution = numbers(logits[0].float().log_softmax(-1))
        (best,) = candidates_of(distribution, distribution, distribution)
        names = self.reader.pieces(best.ids, "source")
        token_id = self.token_ids[position]
        piece = self.pieces[position]
        if position in self.masked:
            token_id = best.ids[0]
            piece = names[0]
        return DecodeStep(
            token=piece,
            token_id=token_id,
            log_prob=float(distribution[0, token_id]),
            alternatives=tuple(map(Alternative, names, best.ids, best.log_probs, best.excluded)),
            parent=0,
        )

    def fills(self, features: Tensor, hooks: Hooks | None) -> dict[int, DecodeStep]:
        """By position, the predictions of an output (source, d_model) for the masks of the text."""
        return {position: self.fill(features, position, hooks) for position in self.masked}

    @torch.inference_mode()
    def distributions(self) -> Tensor:
        """(masks, pieces) log-probabilities in the place of each masked token, by a new pass."""
        hooks = hooks_of(self.reader.config, None, self.changes, self.functions)
        features = self.features([self.token_ids], hooks)
        rows = [
            self.model.logits(features[:, place : place + 1], hooks, place)[0]
            for place in self.masked
        ]
        if not rows:
            return features.new_zeros((0, self.reader.config.vocab_size))
        return torch.cat(rows).float().log_softmax(-1)

    def predicted(self, positions: Iterable[int]) -> dict[int, DecodeStep]:
        """By position, what is predicted of a token if that one were masked, too.

        Each is a pass of its own, with the same changes; several are computed at once.
        """
        hooks = hooks_of(self.reader.config, None, self.changes, self.functions)
        predictions = dict[int, DecodeStep]()
        wanted = list(positions)
        at_once = max(1, MOST_POSITIONS // len(self.token_ids))
        for first in range(0, len(wanted), at_once):
            some = wanted[first : first + at_once]
            features = self.features([self._without(position) for position in some], hooks)
            for of_row, position in zip(features, some, strict=True):
                predictions[position] = self.fill(of_row, position, hooks)
        return predictions

    def _without(self, position: int) -> list[int]:
        """The ids of the text with a token masked."""
        ids = list(self.token_ids)
        mask_id = self.reader.config.mask_id
        assert mask_id is not None
        ids[position] = mask_id
        return ids

    def text(self, fills: Mapping[int, DecodeStep]) -> str:
        """The text with its masks filled; empty if none is."""
        if not fills:
            return ""
        ids = list(self.token_ids)
        for position, fill in fills.items():
            ids[position] = fill.token_id
        return self.reader.text(ids)
