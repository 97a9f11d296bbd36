"""Birth of heads: a few statistics of every head after each step of which there is a snapshot.

``previous`` is the share of rows whose largest weight is one key earlier. ``later`` is the mean weight that a
row gives to tokens after its own if no mask hides any: in the encoder, its real weight; in the decoder, the
softmax of its real scores without the causal mask. Rows that have no later token do not count. A model that
has learned to look back on its own has a small ``later`` in the decoder too; the mask alone does not make it
small.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from lab.heads.statistics import Floats, Totals, sentence_totals
from lab.measurement import Json, listed
from lenses.words.gold_links import align_gold, trace_of
from transformer.model.sites import AttentionKind
from transformer.runs.bootstrap import rounded
from transformer.runs.translator import Translator
from transformer.storage.files import CheckpointError
from transformer.text.links import GoldPair
from transformer.text.pairs import SentencePair
from transformer.trace.records import AttentionTrace
from transformer.training.runs.snapshots import load_snapshot, snapshot_file, snapshot_steps


def opened(directory: Path, title: str | None = None) -> Iterator[tuple[int, Translator]]:
    """The model after each step of which there is a snapshot, in their order; only one is in memory."""
    for step in snapshot_steps(directory):
        found = load_snapshot(directory, step)
        name = f"{title or directory.name} after {step:,} step{'s' * (step != 1)}"
        yield step, Translator(found.translating, found.tokenizer, name=name, rules=found.rules)


def hashes(directory: Path) -> dict[str, str]:
    """The first digits of each snapshot's SHA-256, by step: they say which weights were measured."""
    return {
        str(step): hashlib.sha256(snapshot_file(directory, step).read_bytes()).hexdigest()[:16]
        for step in snapshot_steps(directory)
    }


SNAPSHOTS = "snapshots"
"""The field of ``birth.json`` with the hashes of the snapshots that it describes."""


class Later:
    """Weight on later tokens without a mask, of all heads of one kind, summed over rows."""

    def __init__(self) -> None:
        self._weight: Floats | float = 0.0
        self._even, self._rows = 0.0, 0

    def add(self, trace: AttentionTrace, kind: AttentionKind) -> None:
        """Adds one sentence."""
        scores = np.stack([trace.scores(kind, layer) for layer in range(len(trace.layers[kind]))])
        size = scores.shape[-1]
        later = np.triu(np.ones((size, size), np.float32), 1)
        raised = np.exp(scores - scores.max(-1, keepdims=True))
        weights = raised / raised.sum(-1, keepdims=True)
        self._weight = self._weight + (weights * later).sum((-1, -2))
        self._even += float(later.sum()) / size
        self._rows += size - 1

    def mean(self) -> Floats:
        """(layers, heads) the mean per row."""
        return np.asarray(self._weight / np.float32(max(self._rows, 1)))

    @property
    def even(self) -> float:
        """The same for weight spread evenly over all tokens."""
        return self._even / max(self._rows, 1)


def run_statistics(directory: Path, pairs: Sequence[SentencePair], gold: Sequence[GoldPair]) -> Json:
    """The statistics of all snapshots of a run over pairs, whose targets are forced, and pairs with links.

    ``loss`` (nats per token), ``aer`` and ``aer_read`` by step; ``previous`` and ``later`` by kind and step.
    """
    found = {step: snapshot_statistics(model, pairs, gold) for step, model in opened(directory)}
    if not found:
        raise CheckpointError(f"{directory} has no snapshots; train with --snapshots.")
    each, last = list(found.values()), found[max(found)]
    return {
        "steps": list(found),
        "even": last["even"],
        "aer_diagonal": last["aer_diagonal"],
        **{name: [step[name] for step in each] for name in ("loss", "aer", "aer_read")},
        **{
            name: {kind: [step[name][kind] for step in each] for kind in last[name]}
            for name in ("previous", "later")
        },
    }


def snapshot_statistics(
    translator: Translator, pairs: Sequence[SentencePair], gold: Sequence[GoldPair]
) -> Json:
    """The statistics of one model; arguments as in ``run_statistics``."""
    kinds = [kind for kind, site in translator.config.sites.items() if site.own_keys]
    totals, later = dict.fromkeys(kinds, Totals({}, {})), {kind: Later() for kind in kinds}
    nats = tokens = 0.0
    for pair in pairs:
        run = translator.force(pair.source, pair.target)
        nats, tokens = nats - sum(run.log_probs), tokens + len(run.log_probs)
        for kind in kinds:
            totals[kind] += sentence_totals(run, kind)
            later[kind].add(trace_of(run), kind)
    errors = align_gold(translator, gold).errors()
    return {
        "loss": rounded(nats / tokens),
        "previous": {kind.value: listed(totals[kind].means()["previous"]) for kind in kinds},
        "later": {kind.value: listed(later[kind].mean()) for kind in kinds},
        "even": {kind.value: rounded(later[kind].even) for kind in kinds},
        "aer": listed(errors["aer"]),
        "aer_read": listed(errors["aer_read"]),
        "aer_diagonal": rounded(errors["aer_diagonal"].flat[0]),
    }
