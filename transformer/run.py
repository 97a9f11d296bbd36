"""A finished run, of a translator, a language model or an encoder: text, tokens, steps, and access
to every head."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from transformer.config import AttentionKind, ModelConfig, Place, Side, Sublayer
from transformer.interventions import Intervention
from transformer.view import (
    Array,
    AuditReport,
    BoolArray,
    Check,
    HeadLabels,
    HeadMap,
    HeadView,
    Window,
)

if TYPE_CHECKING:  # a run is also read from a file, without PyTorch
    from torch import Tensor

    from transformer.beam import SearchTree
    from transformer.trace import AttentionTrace, ResidualTrace


Holding = Literal["trace", "maps"]
"""All that attention consumed and produced, or the maps that are made of it."""


@dataclass(frozen=True)
class Alternative:
    """A token that could have come next."""

    token: str  # the piece
    token_id: int  # its id
    log_prob: float  # its log-probability under the model, in nats
    excluded: bool = False  # whether the model's own search rules forbade it here


@dataclass(frozen=True, repr=False)
class DecodeStep:
    """One step of the output."""

    token: str  # the piece that was chosen
    token_id: int  # its id
    log_prob: (
        float  # its log-probability under the model, in nats, no matter how the token was chosen
    )
    alternatives: tuple[Alternative, ...]  # the most probable tokens at this step, best first
    parent: (
        int  # index, from 0, of the hypothesis in the beam that this step extends; 0 without a beam
    )
    # whether the model's search rules, or an intervention, forbade its most probable token;
    # ``log_prob`` and ``alternatives`` are still the model's own
    forced: bool = False


class NotCapturedError(ValueError):
    """The caller asks for something that was not recorded with the translation."""


@dataclass(frozen=True, eq=False, repr=False)
class Translation:
    """A sentence, its translation, and everything that the model computed for it. Immutable.

    A language model's text has no source. Its target is the prompt and what was written after it,
    so that each step, those of the prompt too, has the model's log-probability and its
    alternatives. An encoder alone has a source and no target; ``fills`` says what it predicts for
    the words that are masked.
    """

    source_text: str  # the text as typed, cleaned; ``source_tokens`` is what was read
    # the translation; of an encoder alone, the source with its masks filled, or "" without masks
    text: str
    source_tokens: tuple[str, ...]  # pieces of the source, ending in ``</s>``
    decoder_input_tokens: tuple[
        str, ...
    ]  # what the decoder read: the start token, the output shifted right
    target_tokens: tuple[
        str, ...
    ]  # what the decoder wrote, ending in ``</s>`` unless the limit cut it
    log_probs: tuple[float, ...]  # one per target token, in nats
    steps: tuple[DecodeStep, ...]  # one per target token
    method: str  # "greedy", "beam-4", "sample-7", "forced"
    model: str  # name of the model
    config: ModelConfig  # the model's config
    notes: tuple[str, ...] = ()  # sentences for the reader, such as that the text is very long
    attention: AttentionTrace | None = None  # the trace; None with ``capture=False``
    model_sha256: str | None = None  # digest of the model's weights, if a file with it gave the run
    interventions: tuple[Intervention, ...] = ()  # what was changed in the model while it ran
    functions: tuple[
        str, ...
    ] = ()  # names at which a user's functions changed the run, which nobody repeats
    # runs source and output through the model once more, with the same changes, and returns
    # (target, pieces) log-probabilities, or (masks, pieces) of an encoder alone; None if the run
    # was opened from a file
    distributions: Callable[[], Tensor] | None = field(default=None, repr=False)
    # what a beam search looked at; None unless it was made with ``tree=True``
    tree: SearchTree | None = field(default=None, repr=False)
    prompt: str | None = None  # how a language model's text begins; None of a model that translates
    n_given: int = (
        0  # number of target tokens that were given: those of the prompt, or of a forced output
    )
    # of a conversation, whose turn each token belongs to that the decoder read, such as "user"; ""
    # where turns cannot be told apart
    roles: tuple[str, ...] = ()
    # by position in the source, what an encoder predicts for a masked token: the most probable
    # token, its log-probability, and the alternatives
    fills: Mapping[int, DecodeStep] = field(default_factory=dict)
    # By position, what it predicts of any tokens if each alone were masked, too: the token that was
    # read there, with its log-probability given all others (Salazar et al. 2020). New passes with
    # the same changes; None if the model predicts no masked words, or the run is from a file
    predict: Callable[[Iterable[int]], Mapping[int, DecodeStep]] | None = field(
        default=None, repr=False
    )
    # id of what the decoder read first: the start token, or a text's own first token; None if a
    # file with the run does not say it
    start_id: int | None = None

    @property
    def holds(self) -> Holding:
        """What of its attention it holds, which decides what is saved of it."""
        return "trace"

    @property
    def nbytes(self) -> int:
        """Bytes of what it holds of its attention."""
        return 0 if self.attention is None else self.attention.nbytes

    @property
    def surprisals(self) -> tuple[float, ...]:
        """−log₂ p of each token given those before it, in bits (Hale 2001)."""
        return tuple(-value / math.log(2) for value in self.log_probs)

    @property
    def predictions(self) -> Mapping[int, DecodeStep]:
        """What was predicted, by position on the cursor's side: at every step of the output, or in
        an encoder alone for every masked token."""
        return dict(enumerate(self.steps)) if self.config.writes else self.fills

    @property
    def target_ids(self) -> tuple[int, ...]:
        """Ids of the target tokens."""
        return tuple(step.token_id for step in self.steps)

    @property
    def read_ids(self) -> tuple[int, ...]:
        """Ids of the tokens that the decoder read."""
        first = self.config.bos_id if self.start_id is None else self.start_id
        return (first, *self.target_ids[:-1])

    @property
    def has_maps(self) -> bool:
        """Whether the weights of its heads are known."""
        return self.attention is not None

    def head(
        self, kind: AttentionKind | str, layer: int, head: int, window: Window | None = None
    ) -> HeadView:
        """One head, or a window of it, with labels and audit.

        IndexError if there is no such layer or head (both count from 0), or the window leaves the
        map; NotCapturedError if nothing was recorded.
        """
        from transformer.audit import head_view

        kind = AttentionKind(kind)
        return head_view(
            self.trace,
            (kind, layer, head),
            self.labels(kind),
            model=self.model,
            norm=self.config.placement,
            window=window,
            more=self._texts,
        )

    def audit(self, *places: Place) -> AuditReport:
        """The checks of the trace (``AttentionTrace.audit``), and whether it is the trace of these
        tokens.

        NotCapturedError if nothing was recorded.
        """
        return self.trace.audit(*places).joined(self._texts())

    @property
    def is_audited(self) -> bool:
        """Whether the checks of the whole run were made: one more audit costs little."""
        return self.attention is None or self.attention.is_audited

    def _texts(self) -> AuditReport:
        """Whether texts and tokens of this run are those that were recorded; no check if none
        were."""
        recorded = self.trace.tokens
        if not recorded:
            return AuditReport(())
        pieces = {read: self.tokens(read) for read in self.config.stacks}
        wrong = any(
            recorded[read].pieces != tokens for read, tokens in pieces.items() if read in recorded
        )
        if "encoder" in recorded:
            wrong |= recorded["encoder"].text != self.source_text
        if "written" in recorded:
            written = recorded["written"]
            wrong |= written.pieces != self.target_tokens or written.text != self.text
            # a batch fills it up with padding
            padding = (self.config.pad_id,) * (len(written.ids) - len(self.steps))
            wrong |= written.ids != self.target_ids + padding
        return AuditReport((Check("text", float(wrong), 0.0),))

    def map(
        self, kind: AttentionKind | str, layer: int, head: int, window: Window | None = None
    ) -> HeadMap:
        """One head as a map, without its vectors; arguments and errors as in ``head``."""
        return self.head(kind, layer, head, window)

    def weights(self, kind: AttentionKind | str, layer: int, head: int) -> Array:
        """(queries, keys) weights of a whole head; errors as in ``head``."""
        return self.trace.weights(kind, layer, head)

    def layer_weights(
        self, kind: AttentionKind | str, layer: int, window: Window | None = None
    ) -> Array:
        """(heads, queries, keys) weights of all heads of a layer; errors as in ``head``."""
        return self.trace.weights(AttentionKind(kind), layer, window=window)

    def mask(self, kind: AttentionKind | str, layer: int, head: int) -> BoolArray:
        """(queries, keys) of a whole head, True = may attend; errors as in ``head``."""
        return self.trace.layer(kind, layer, head).mask().numpy()

    def tokens(self, side: Side) -> tuple[str, ...]:
        """Tokens that a side read: the encoder the source, the decoder the start token and the
        output."""
        return {"encoder": self.source_tokens, "decoder": self.decoder_input_tokens}[side]

    def labels(self, kind: AttentionKind | str) -> HeadLabels:
        """The tokens along the maps of one kind; no row predicts one of a model that writes
        nothing, or of which that is not known."""
        site = self.config.sites[AttentionKind(kind)]
        writes = self.config.writes and site.query_side == "decoder"
        written = self.target_tokens if writes else None
        return HeadLabels(self.tokens(site.query_side), written, self.tokens(site.key_side))

    def stream(self, sublayer: Sublayer) -> ResidualTrace:
        """A sub-layer and the residual stream around it.

        NotCapturedError if the run was not made with ``capture=Capture(residual=True)``; IndexError
        if there is no such sub-layer.
        """
        residuals = self.trace.residuals
        if not residuals:
            raise NotCapturedError(
                "Sub-layers were not recorded; translate with capture=Capture(residual=True)."
            )
        if sublayer not in residuals:
            where = f"{sublayer.name} in a layer {sublayer.layer}"
            raise IndexError(f"The {sublayer.side} has no {where}; layers count from 0.")
        return residuals[sublayer]

    @property
    def trace(self) -> AttentionTrace:
        """What was recorded; NotCapturedError if nothing was."""
        if self.attention is None:
            raise NotCapturedError("Attention was not recorded; translate with capture=True.")
        return self.attention
