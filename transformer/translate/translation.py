"""A translation: text, tokens, steps, and access to every head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from torch import Tensor

from transformer.model.config import TransformerConfig
from transformer.model.interventions import Intervention
from transformer.model.sites import AttentionKind, Side, Site, Sublayer
from transformer.trace.audit import audit_view
from transformer.trace.records import AttentionTrace, ResidualTrace
from transformer.trace.report import AuditReport
from transformer.trace.view import Array, BoolArray, HeadView, Window


@dataclass(frozen=True)
class Alternative:
    """A token that could have come next.

    Attributes:
        token: The piece.
        token_id: Its id.
        log_prob: Its log-probability under the model, in nats.
    """

    token: str
    token_id: int
    log_prob: float


@dataclass(frozen=True)
class DecodeStep:
    """One step of the output.

    Attributes:
        token: The piece that was chosen.
        token_id: Its id.
        log_prob: Its log-probability under the model, in nats, no matter how the token was chosen.
        alternatives: The most probable tokens at this step, best first.
        parent: Index, from 0, of the hypothesis in the beam that this step extends; 0 without a beam.
        forced: Whether the model's search rules, or an intervention, forbade its most probable token;
            ``log_prob`` and ``alternatives`` are still the model's own.
    """

    token: str
    token_id: int
    log_prob: float
    alternatives: tuple[Alternative, ...]
    parent: int
    forced: bool = False


class NotCapturedError(ValueError):
    """The caller asks for something that was not recorded with the translation."""


@dataclass(frozen=True, eq=False)
class Translation:
    """A sentence, its translation, and everything that the model computed for it. Immutable.

    Attributes:
        source_text: The text as the model read it.
        text: The translation.
        source_tokens: Pieces of the source, ending in ``</s>``.
        decoder_input_tokens: What the decoder read: the start token and the output, shifted right.
        target_tokens: What the decoder wrote, ending in ``</s>`` unless the length limit cut it.
        log_probs: One per target token, in nats.
        steps: One per target token.
        method: "greedy", "beam-4", "sample-7", "forced".
        model: Name of the model.
        config: The model's config.
        notes: Sentences for the reader, such as that the text is longer than training texts.
        attention: The trace; None with ``capture=False``.
        model_sha256: Digest of the model's weights, if the run was opened from a file that gives it.
        interventions: What was changed in the model while it ran.
        distributions: Runs source and output through the model once more, with the same changes, and returns
            (target, pieces) log-probabilities; None if the run was opened from a file.
    """

    source_text: str
    text: str
    source_tokens: tuple[str, ...]
    decoder_input_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    log_probs: tuple[float, ...]
    steps: tuple[DecodeStep, ...]
    method: str
    model: str
    config: TransformerConfig
    notes: tuple[str, ...] = ()
    attention: AttentionTrace | None = None
    model_sha256: str | None = None
    interventions: tuple[Intervention, ...] = ()
    distributions: Callable[[], Tensor] | None = field(default=None, repr=False)

    @property
    def target_ids(self) -> tuple[int, ...]:
        """Ids of the target tokens."""
        return tuple(step.token_id for step in self.steps)

    def head(
        self, kind: AttentionKind | str, layer: int, head: int, window: Window | None = None
    ) -> HeadView:
        """One head, or a window of it, with labels and audit.

        Raises:
            IndexError: There is no such layer or head (both count from 0), or the window leaves the map.
            NotCapturedError: Nothing was recorded.
        """
        kind = AttentionKind(kind)
        provenance = self.model, self.config.norm
        return head_view(self._trace(), (kind, layer, head), self.labels(kind), provenance, window)

    def tokens(self, side: Side) -> tuple[str, ...]:
        """What a side read: the encoder the source, the decoder the start token and the output."""
        return {"encoder": self.source_tokens, "decoder": self.decoder_input_tokens}[side]

    def labels(self, kind: AttentionKind | str) -> HeadLabels:
        """The tokens along the maps of one kind."""
        site = self.config.sites[AttentionKind(kind)]
        return site_labels(site, self.source_tokens, self.decoder_input_tokens, self.target_tokens)

    def positions(self, side: Side) -> Array | None:
        """(length, d_model) encoding added to the embeddings of one side; None if none is added."""
        encoding = self._trace().embeddings[side].positions
        return None if encoding is None else read_only(encoding)

    def embeddings(self, side: Side) -> Array:
        """(length, d_model) token embeddings × √d_model of one side."""
        return read_only(self._trace().embeddings[side].tokens)

    def residual(self, side: Side, layer: int, sublayer: str) -> ResidualTrace:
        """A sub-layer and the residual stream around it.

        Args:
            side: "encoder" or "decoder".
            layer: Layer, from 0.
            sublayer: "self_attention", "cross_attention" or "feed_forward".

        Raises:
            NotCapturedError: The translation was not made with ``capture=Capture(residual=True)``.
            IndexError: There is no such sub-layer.
        """
        return self.stream(Sublayer(side, layer, sublayer))  # type: ignore[arg-type]

    def stream(self, sublayer: Sublayer) -> ResidualTrace:
        """A sub-layer and the residual stream around it; raises as ``residual``."""
        residuals = self._trace().residuals
        if not residuals:
            raise NotCapturedError(
                "Sub-layers were not recorded; translate with capture=Capture(residual=True)."
            )
        if sublayer not in residuals:
            where = f"{sublayer.name} in a layer {sublayer.layer}"
            raise IndexError(f"The {sublayer.side} has no {where}; layers count from 0.")
        return residuals[sublayer]

    @property
    def padding_mask(self) -> BoolArray:
        """(source,) bool, True for tokens; one sentence alone has no padding."""
        mask: BoolArray = self._trace().mask(AttentionKind.CROSS, 0, 0)[0]
        return mask

    def _trace(self) -> AttentionTrace:
        if self.attention is None:
            raise NotCapturedError("Attention was not recorded; translate with capture=True.")
        return self.attention


@dataclass(frozen=True)
class HeadLabels:
    """Tokens along a map: those that rows read, those that rows predict (None in the encoder), the keys."""

    queries: tuple[str, ...]
    predicted: tuple[str, ...] | None
    keys: tuple[str, ...]


def site_labels(
    site: Site, source: tuple[str, ...], decoder_input: tuple[str, ...], target: tuple[str, ...]
) -> HeadLabels:
    """The tokens along the maps of one attention.

    Args:
        site: The attention.
        source: What the encoder read.
        decoder_input: What the decoder read.
        target: What it predicted, row by row.
    """
    read = {"encoder": source, "decoder": decoder_input}
    return HeadLabels(read[site.query_side], target if site.predicts else None, read[site.key_side])


def head_view(
    trace: AttentionTrace,
    place: tuple[AttentionKind, int, int],
    labels: HeadLabels,
    model: tuple[str, str],
    window: Window | None = None,
) -> HeadView:
    """Reads one head out of a trace and audits the arrays that it returns.

    Args:
        trace: The trace.
        place: Kind, layer and head.
        labels: Tokens of the whole map.
        model: Name, and "pre" or "post".
        window: The part of the map; None for all of it.

    Raises:
        IndexError: There is no such layer or head, or the window leaves the map.
    """
    kind, layer, head = place
    record = trace.layer(kind, layer, head)
    window = _checked(window or record.window(), record.window())
    rows, keys = window.queries, window.keys
    view = HeadView(
        kind=kind,
        layer=layer,
        head=head,
        model=model[0],
        norm=model[1],
        query_tokens=labels.queries[rows],
        predicted_tokens=None if labels.predicted is None else labels.predicted[rows],
        key_tokens=labels.keys[keys],
        window=window,
        scores=trace.scores(kind, layer, head, window),
        mask=trace.mask(kind, layer, head, window),
        weights=trace.weights(kind, layer, head, window),
        query=read_only(record.query[head, rows]),
        key=read_only(record.key[head, keys]),
        value=read_only(record.value[head, keys]),
        output=read_only(record.output[head, rows]),
        audit=AuditReport(()),
    )
    found = trace.audit((kind, layer))
    proof = found.checks + audit_view(view, record).checks
    return replace(view, audit=AuditReport(proof, found.changes))


def read_only(tensor: Tensor) -> Array:
    """The tensor's numbers without a copy, and read-only because a trace is shared."""
    array: Array = tensor.numpy()
    array.flags.writeable = False
    return array


def _checked(window: Window, whole: Window) -> Window:
    inside = (
        0 <= window.query_start < window.query_stop <= whole.query_stop
        and 0 <= window.key_start < window.key_stop <= whole.key_stop
    )
    if not inside:
        raise IndexError(
            f"The window {window} leaves the map of {whole.query_stop} × {whole.key_stop} cells."
        )
    return window
