"""What a run is compared with: other heads, an untrained twin, mean outputs, words at other
places."""

import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from explorer.lenses.words.groups import reading_groups
from transformer.audit import OUTPUT_LIMIT, PLACES_UNMADE, audit, audit_entered
from transformer.config import AttentionKind, ModelConfig, Place
from transformer.decoding import AnyModel
from transformer.encodings import BiasRule, PositionalEncoding
from transformer.hooks import Capture, Hooks
from transformer.interventions import Intervention, InterventionError
from transformer.reader import InputError, Tokens
from transformer.run import Translation
from transformer.storage.directory import NETWORKS
from transformer.text.kinds import at_least
from transformer.text.words import Group, is_punctuation
from transformer.trace import AttentionTrace, TokenTrace, trace_of
from transformer.translator import Translator
from transformer.view import Array, AuditReport

COUNT = 20
"""Most controls: if there are more, this many are drawn."""
_LOCK = threading.Lock()
"""There is one global generator; one user at a time, so that a seed fixes what is drawn."""


class RandomHeads(NamedTuple):
    """Δ log p of a whole given output by a change, and by the same change at other heads, in
    nats."""

    change: Intervention  # the change
    controls: tuple[Intervention, ...]  # the same change at other heads of its layer
    effect: float  # of the change; negative if the output became less probable
    effects: NDArray[np.float64]  # (controls,) of each control in its place
    complete: bool  # whether the controls are all that there are, not a random sample of them

    @property
    def as_large(self) -> int:
        """Number of controls that move the output's log-probability at least as far as the change
        does."""
        return int((np.abs(self.effects) >= abs(self.effect)).sum())


def random_heads(
    translator: Translator,
    text: str,
    target: Tokens,
    change: Intervention,
    beside: Iterable[Intervention] = (),
    count: int = COUNT,
    seed: int = 0,
) -> RandomHeads:
    """Measures a change of heads, and the same change at other heads of the same kind and layer:
    what it does to the log-probability of the target, or of these ids at the masks of a text.

    InputError for a text, InterventionError for a change, for which there is no such control.
    """
    controls, complete = same_change_elsewhere(change, translator.config, count, seed)
    fixed = tuple(beside)
    log_ps = []
    for changes in (fixed, *((*fixed, varied) for varied in (change, *controls))):
        log_ps.append(_log_prob(translator, text, target, changes))
    effect, *effects = (log_p - log_ps[0] for log_p in log_ps[1:])
    return RandomHeads(change, controls, effect, np.array(effects), complete)


def _log_prob(
    translator: Translator, text: str, target: Tokens, changes: Sequence[Intervention]
) -> float:
    """Σ log p of the tokens of a target under some changes, in nats."""
    if translator.config.writes:
        run = translator.force(text, target, capture=False, interventions=changes)
        return math.fsum(run.log_probs)
    run = translator.fill(text, capture=False, interventions=changes)
    assert run.distributions is not None
    ids = torch.tensor([translator.token_id(token, "source") for token in target])
    return math.fsum(run.distributions().cpu().gather(1, ids[:, None])[:, 0].tolist())


def same_change_elsewhere(
    change: Intervention, config: ModelConfig, count: int = COUNT, seed: int = 0
) -> tuple[tuple[Intervention, ...], bool]:
    """A change at as many other heads of its layer, and whether these are all; errors as
    ``random_heads``."""
    at_least(1).check("count", count)
    if change.part not in ("scores", "weights", "heads"):
        raise InterventionError(
            f"Random heads are a control for a change of heads, not for this one: {change}."
        )
    changed = change.heads(config.n_heads)
    free = [head for head in range(config.n_heads) if head not in changed]
    if not (ways := math.comb(len(free), len(changed))):
        raise InterventionError(
            f"A control needs {len(changed)} other heads of the same layer, and there are "
            f"{len(free)}."
        )
    drawn: Iterable[tuple[int, ...]] = combinations(free, len(changed))
    if ways > count:
        generator = torch.Generator().manual_seed(seed)
        different: dict[tuple[int, ...], None] = {}
        while len(different) < count:
            order = torch.randperm(len(free), generator=generator)[: len(changed)].tolist()
            different[tuple(sorted(free[at] for at in order))] = None
        drawn = different
    return tuple(change.elsewhere(heads) for heads in drawn), ways <= count


def untrained_twin(translator: Translator, seed: int) -> Translator:
    """A model of the same config with a seed's first weights; draws nothing from the global
    generator."""
    with _LOCK, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = NETWORKS[type(translator.config)](translator.config)
    assert isinstance(model, AnyModel)
    name = f"{translator.name}, untrained twin, seed {seed}"
    return Translator(model, translator.tokenizer, name=name, rules=translator.rules)


def mean_outputs(
    translator: Translator, pairs: Iterable[tuple[str, str | None]]
) -> tuple[dict[AttentionKind, Tensor], int]:
    """By kind, every head's mean output over a sample; and how many sentences were read, else
    ValueError."""
    sums: dict[AttentionKind, Tensor] = {}
    rows = dict.fromkeys(translator.config.sites, 0)
    read = 0
    for source, target in pairs:
        try:
            run = (
                translator.translate(source) if target is None else translator.force(source, target)
            )
        except InputError:
            continue
        read += 1
        for kind, layers in run.trace.layers.items():
            outputs = torch.stack(
                [layer.output for layer in layers]
            ).double()  # (layers, heads, rows, d_head)
            sums[kind] = sums.get(kind, 0) + outputs.sum(2)
            rows[kind] += outputs.shape[2]
    if not read:
        raise ValueError("No sentence could be read.")
    return {kind: (total / rows[kind]).float() for kind, total in sums.items()}, read


class OffsetEncoding(PositionalEncoding):
    """An encoding whose position 0 is position ``offset`` of another encoding."""

    def __init__(self, encoding: PositionalEncoding, offset: int) -> None:
        nn.Module.__init__(self)
        self.encoding = encoding
        self.offset = offset
        self.max_positions = encoding.max_positions - offset

    def added(self, length: int, first: int = 0) -> Tensor | None:
        return self.encoding.added(length, first + self.offset)

    def rotate(self, x: Tensor, first: int = 0) -> Tensor:
        return self.encoding.rotate(x, first + self.offset)

    def rules(self, n_layers: int) -> Sequence[BiasRule | None]:
        return self.encoding.rules(n_layers)  # which depend on distances alone


@torch.inference_mode()
def encode_moved(translator: Translator, text: str, offset: int) -> AttentionTrace:
    """Encoder self-attention of a text from position ``offset`` on; InputError if it is empty or
    too far."""
    model = translator.translating
    ids = (*translator.ids(text), translator.config.eos_id)
    moves = {"encoder.encoding": [lambda own, at: OffsetEncoding(own, offset)]}
    hooks = Hooks(Capture().parts, moves)
    try:
        model.encode(torch.tensor([ids], device=translator.device), hooks=hooks)
    except ValueError as error:
        last = offset + len(ids)
        most = translator.config.max_positions
        raise InputError(
            f"The sentence would end at position {last:,} of {most:,} positions."
        ) from error

    def auditor(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
        entered = audit_entered(trace, model, OUTPUT_LIMIT[trace.dtype])
        return replace(audit(trace, places), unmade=(PLACES_UNMADE,)).joined(entered)

    read = TokenTrace(
        ids, translator.pieces(ids, "source"), translator.cut(text).clean.text, offset
    )
    trace = trace_of(hooks, model.config, auditor, tokens={"encoder": read})
    assert trace is not None
    return trace


def words_of(tokens: tuple[str, ...]) -> tuple[Group, ...]:
    """The words of a source as groups of pieces, without special tokens and punctuation."""
    groups = reading_groups(tokens)
    return tuple(g for g in groups if not g.special and not is_punctuation(g.text))


def swapped_order(tokens: tuple[str, ...], one: int, other: int) -> tuple[int, ...]:
    """The place before of each token after two words (from 0, of ``words_of``) are exchanged."""
    words = words_of(tokens)
    (low, high) = sorted((one, other))
    if not 0 <= low <= high < len(words):
        raise IndexError(
            f"The sentence has {len(words)} words, counted from 0; there are no words {one} and "
            f"{other}."
        )
    first = words[low]
    second = words[high]
    order = tuple(range(len(tokens)))
    if first is second:
        return order
    between = order[first.stop : second.start]
    rest = order[second.stop :]
    return (*order[: first.start], *second.indices, *between, *first.indices, *rest)


@torch.inference_mode()
def swap_words(
    translator: Translator, text: str, one: int, other: int
) -> tuple[Translation, Array]:
    """Translates a text with two words exchanged; InputError if their pieces change, IndexError if
    absent.

    Returns also (tokens,) the distance that each encoding moved, as a share of its norm.
    """
    eos_id = translator.config.eos_id
    ids = (*translator.ids(text), eos_id)
    order = swapped_order(translator.pieces(ids, "source"), one, other)
    moved = tuple(ids[place] for place in order)
    changed = translator.tokenizer.target.decode(moved)
    if (*translator.ids(changed), eos_id) != moved:
        raise InputError(
            "These two words are split into other pieces after the exchange; choose others."
        )
    before, after = (
        translator.translating.encode(torch.tensor([row], device=translator.device))[0]
        for row in (ids, moved)
    )
    expected = before[list(order)]
    change = (after - expected).norm(dim=-1) / expected.norm(dim=-1)
    return translator.translate(changed), change.cpu().numpy()
