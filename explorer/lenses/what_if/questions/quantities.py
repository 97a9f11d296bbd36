"""The quantities that a question may ask for, each computed from the run.

Where a change is measured, the model runs again with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.lenses.measures.effect import Cut, Effects
from explorer.lenses.measures.stream import UnmeasuredError
from explorer.lenses.what_if.arithmetic import softmax
from explorer.lenses.what_if.build import COPY, HALF, NEAR, plane_of, short_of
from explorer.lenses.what_if.questions.question import MOST, Measured, Option, Question, Viewpoint, number
from transformer import interventions as do
from transformer.config import AttentionKind
from transformer.interventions import Intervention
from transformer.run import Translation
from transformer.translator import Translator

Floats = NDArray[np.float64]
NAMES = {
    AttentionKind.ENCODER: "encoder self-attention",
    AttentionKind.DECODER: "masked self-attention",
    AttentionKind.CROSS: "cross-attention",
}


@dataclass(frozen=True)
class Asking:
    """A question at a place of a run."""

    question: Question
    run: Translation
    place: Viewpoint
    model: Translator | None  # None if the run was opened from a file
    name: Callable[[str], str]  # how a piece is written

    @property
    def kind(self) -> AttentionKind:
        """The attention that the question is about."""
        return AttentionKind(self.question.kind)

    @property
    def head(self) -> tuple[int, int]:
        """The chosen head of that kind."""
        return self.place.heads[self.kind]

    @property
    def row(self) -> int:
        """The marked query of that kind."""
        return self.place.row(self.kind)

    def every_head(self) -> list[tuple[int, int]]:
        """Layer and head of every head of the kind."""
        layers, heads = self.run.config.sites[self.kind].n_layers, self.run.config.n_heads
        return [(layer, head) for layer in range(layers) for head in range(heads)]

    def translator(self) -> Translator:
        """The model; UnmeasuredError if there is none."""
        if self.model is None:
            raise UnmeasuredError("This question runs the model again, and a file holds no model.")
        return self.model

    def where(self, row: int | None = None) -> str:
        """The chosen head, and a row of it, in words."""
        return f"{NAMES[self.kind]}, {_head(*self.head)}, {self.row_name(self.row if row is None else row)}"

    def row_name(self, row: int) -> str:
        """A row of the kind's maps, with the token that it reads, or predicts in cross-attention."""
        said = self.run.labels(self.kind)
        if self.kind is AttentionKind.CROSS and said.predicted is not None:
            return f"the row that predicts “{self.name(said.predicted[row])}”"
        reads = "of" if self.kind is AttentionKind.ENCODER else "that reads"
        return f"the row {reads} “{self.name(said.queries[row])}”"


def _head(layer: int, head: int) -> str:
    return f"L{layer + 1} H{head + 1}"


def _named(tokens: Sequence[str], places: Iterable[int], name: Callable[[str], str]) -> list[str]:
    """Names of some positions; those that occur twice say which one is meant."""
    return [
        f"“{name(tokens[i])}”" + (f" (key {i + 1})" if list(tokens).count(tokens[i]) > 1 else "")
        for i in places
    ]


def _spread(values: Floats, most: int = MOST) -> list[int]:
    """The place of the largest value and of others, evenly spread over the order, in their own order."""
    order = np.argsort(-values, kind="stable")
    ranks = np.unique(np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int))
    return sorted(int(order[rank]) for rank in ranks)


def _measured(asks: str, names: Sequence[str], values: Sequence[float], unit: str, best: int) -> Measured:
    if len(names) < 2:
        raise UnmeasuredError("There is only one possible answer here, so nothing is asked.")
    shown = [number(value) + unit for value in values]
    options = tuple(Option(*each) for each in zip(names, map(float, values), shown, strict=True))
    return Measured(asks, options, best)


def _largest(asks: str, names: Sequence[str], values: Sequence[float], unit: str = "") -> Measured:
    return _measured(asks, names, values, unit, int(np.argmax(values)) if len(values) else 0)


def largest_key(at: Asking) -> Measured:
    """The key with the largest weight of the marked row."""
    weights = at.run.weights(at.kind, *at.head)[at.row]
    seen = np.flatnonzero(at.run.mask(at.kind, *at.head)[at.row])
    keys = sorted(map(int, sorted(seen, key=lambda key: -weights[key])[:MOST]))
    names = _named(at.run.labels(at.kind).keys, keys, at.name)
    return _largest(f"In {at.where()}: which key has the largest weight?", names, [weights[k] for k in keys])


def head_effect(at: Asking) -> Measured:
    """The head of a list that moves log p of the step's token most when it gives no output."""
    keys = tuple(range(len(at.run.labels(at.kind).keys)))
    effects = Effects(at.translator(), at.run)
    cuts = [(Cut(at.kind, keys, "zeroed", *head),) for head in at.every_head()]
    moved = np.abs(effects.of(cuts)[:, at.place.step].numpy().astype(np.float64))
    token = at.name(at.run.target_tokens[at.place.step])
    asks = f"which one moves log p of “{token}” most when it is switched off?"
    return _of_heads(at, asks, moved, " nats")


def candidate(at: Asking) -> Measured:
    """The token of a rank among the candidates of the step."""
    step, rank = at.run.steps[at.place.step], at.question.rank
    taken = step.alternatives[rank - 1 : rank - 1 + MOST]
    best = taken[0].token_id if taken else -1
    taken = tuple(sorted(taken, key=lambda each: (each.token, each.token_id)))
    more = ", ".join(f"“{at.name(each.token)}”" for each in step.alternatives[: rank - 1])
    apart = f"apart from {more}, " if more else ""
    asks = f"At step {at.place.step + 1}: {apart}which token is the most probable?"
    names = [f"“{at.name(each.token)}”" for each in taken]
    place = [each.token_id for each in taken].index(best) if taken else 0
    found = _measured(asks, names, [each.log_prob for each in taken], "", place)
    return replace(found, options=tuple(replace(each, shown=_share(each.value)) for each in found.options))


def _share(log_prob: float) -> str:
    """A probability in per cent, with three digits that count."""
    share = 100 * float(np.exp(log_prob))
    return f"{share:.{max(1, 2 - int(np.floor(np.log10(share))))}f} %" if share > 1e-6 else "0.0 %"


KEYS: Mapping[str, Callable[[int], int]] = {
    "next": lambda row: row + 1,
    "previous": lambda row: row - 1,
    "same": lambda row: row,
    "first": lambda row: 0,
}
"""Keys that a question about a mask names, seen from its row."""


def masked(at: Asking) -> Measured:
    """The visibility of a key for the marked row, as the mask has it."""
    mask, weights = at.run.mask(at.kind, *at.head), at.run.weights(at.kind, *at.head)
    row = at.row
    if at.question.key == "next":
        row = min(row, mask.shape[1] - 2)
    elif at.question.key == "previous":
        row = max(row, 1)
    key = KEYS[at.question.key](row)
    if not (0 <= row < mask.shape[0] and 0 <= key < mask.shape[1]):
        raise UnmeasuredError("This sentence is too short for the question.")
    name = at.name(at.run.labels(at.kind).keys[key])
    asks = f"In {at.where(row)} (row {row + 1}): may it see key {key + 1}, “{name}”?"
    sees, count = bool(mask[row, key]), int(mask[row].sum())
    why = (
        f"Row {row + 1} sees {count} of {mask.shape[1]} keys; key {key + 1} is "
        f"{'visible' if sees else 'masked'}, and its weight is {weights[row, key]:.2f}."
    )
    options = Option("it is visible", float(sees), ""), Option("it is masked", float(not sees), "")
    return Measured(asks, options, 0 if sees else 1, exact=True, why=why)


def visible(at: Asking) -> Measured:
    """The number of keys that the marked row does not see: the row's number would tell those that it sees."""
    mask = at.run.mask(at.kind, *at.head)
    sees, keys = int(mask[at.row].sum()), mask.shape[1]
    right = keys - sees
    numbers = sorted({right, max(right - 1, 0), min(right + 1, keys - 1), sees, 0})
    if len(numbers) < 2:
        raise UnmeasuredError("This sentence is too short for the question.")
    asks = f"In {at.where()} (row {at.row + 1}): how many of its {keys} cells are masked?"
    why = f"Row {at.row + 1} sees {sees} of {keys} keys, so {right} cells of the row are masked."
    options = tuple(Option(f"{each}", float(each == right), "") for each in numbers)
    return Measured(asks, options, numbers.index(right), exact=True, why=why)


def entropy(at: Asking) -> Measured:
    """The row, head or way of scaling with the smallest entropy."""
    ways: dict[str, Callable[[Asking], tuple[str, list[str], Floats]]] = {
        "rows": _rows,
        "heads": _heads,
        "scale": _scaled,
    }
    of, names, values = ways[at.question.among](at)
    places = _spread(-values)
    asks = f"In {of}: which has the {'smaller' if len(places) == 2 else 'smallest'} entropy?"
    chosen = values[places]
    return _measured(
        asks, [names[i] for i in places], list(chosen), " nats", int(np.argmin(chosen)) if places else 0
    )


def entropy_of(weights: NDArray[Any]) -> Floats:
    """−Σ w ln w of each row, in nats."""
    exact = weights.astype(np.float64)
    found: Floats = -(exact * np.log(np.where(exact > 0, exact, 1.0))).sum(-1)
    return found


def _rows(at: Asking) -> tuple[str, list[str], Floats]:
    rows = np.flatnonzero(at.run.mask(at.kind, *at.head).sum(-1) > 1)
    said = at.run.labels(at.kind)
    tokens = said.predicted if at.kind is AttentionKind.CROSS and said.predicted else said.queries
    names = [f"row {row + 1}, “{at.name(tokens[row])}”" for row in rows]
    values = entropy_of(at.run.weights(at.kind, *at.head)[rows])
    return f"{NAMES[at.kind]}, {_head(*at.head)}", names, values


def _heads(at: Asking) -> tuple[str, list[str], Floats]:
    layer, heads = at.head[0], range(at.run.config.n_heads)
    found = [float(entropy_of(at.run.weights(at.kind, layer, head)[at.row])) for head in heads]
    of = f"{NAMES[at.kind]}, layer {layer + 1}, {at.row_name(at.row)}"
    return of, [_head(layer, head) for head in heads], np.array(found)


def _scaled(at: Asking) -> tuple[str, list[str], Floats]:
    site = at.run.config.sites[at.kind]
    if site.score != "scaled_dot":
        raise UnmeasuredError(f"The scores of this model's {NAMES[at.kind]} are not divided by √d_k.")
    view = at.run.head(at.kind, *at.head)
    scores, width = view.scores[at.row].astype(np.float64), view.query.shape[-1]
    raw = view.key.astype(np.float64) @ view.query[at.row].astype(np.float64)
    without = softmax(scores - raw / np.sqrt(width) + raw, view.mask[at.row])
    values = entropy_of(np.stack([view.weights[at.row], without]))
    return at.where(), [f"divided by √{width}", "not divided"], values


Role = Callable[[NDArray[Any]], NDArray[Any]]
ROLES: dict[str, tuple[str, Role]] = {
    "previous": ("the key before the query", lambda weights: np.diagonal(weights, -1)),
    "next": ("the key after the query", lambda weights: np.diagonal(weights, 1)),
    "same": ("the key at the query's own place", np.diagonal),
    "first": ("the first key", lambda weights: weights[1:, 0]),
    "end": ("the last key of the source, the end of the sentence", lambda weights: weights[:, -1]),
}
"""Place where a head with the role looks, and the weights there, one for each row that has such a key."""


def role(at: Asking) -> Measured:
    """The head of a list that has a role: its mean weight there is the largest."""
    if at.question.role not in ROLES:
        asks, values = "which head's strongest links agree best with links made by hand (1 − AER)?", _aer(at)
    else:
        words, of = ROLES[at.question.role]
        found = [of(at.run.weights(at.kind, *head)) for head in at.every_head()]
        if not found[0].size:
            raise UnmeasuredError("This sentence is too short for the question.")
        asks = f"over all rows, which head puts the most weight on {words}?"
        values = np.array([float(each.mean()) for each in found])
    return _of_heads(at, asks, values)


def _of_heads(at: Asking, asks: str, values: Floats, unit: str = "") -> Measured:
    """A question about some heads: that of the largest value, and others spread over the order."""
    heads, chosen = at.every_head(), _spread(values)
    names = [_head(*heads[i]) for i in chosen]
    return _largest(f"Of these heads of {NAMES[at.kind]}: {asks}", names, list(values[chosen]), unit)


def _aer(at: Asking) -> Floats:
    """1 − alignment error of every cross-attention head, as the model's own file states it."""
    known = (at.translator().heads or {}).get("heads", {}).get(str(at.kind))
    if at.kind is not AttentionKind.CROSS or not known or "aer" not in known[0][0]:
        raise UnmeasuredError("Nobody measured which head of this model aligns best.")
    return np.array([1 - float(head["aer"]) for layer in known for head in layer])


def unsure(at: Asking) -> Measured:
    """The step whose token, written or given, has the smallest probability."""
    logs = np.array([step.log_prob for step in at.run.steps], np.float64)
    chosen = _spread(-logs)
    names = [f"step {i + 1}, “{at.name(at.run.target_tokens[i])}”" for i in chosen]
    asks = "Which of these tokens was the least probable at its step?"
    found = _largest(asks, names, list(-logs[chosen]))
    shown = [replace(each, shown=_share(-each.value)) for each in found.options]
    return replace(found, options=tuple(shown))


_GOALS = {
    "copy": f"build a query that gives one key a weight of at least {COPY}",
    "average": f"build a query that gives two keys a weight of {HALF} ± {NEAR} each",
}


def build(at: Asking) -> Measured:
    """Whether a query in the plane of two keys reaches a goal: asked only where one does.

    What the page measures of the visitor's own query is the answer, see `explorer.lenses.what_if.build`.
    """
    goal = at.question.goal
    best, _ = plane_of(at.run, (at.kind, *at.head), at.row, None, goal).best(goal)
    if short_of(goal, best, best) > 0:
        raise UnmeasuredError("Of the pairs of keys that were tried, none allows it: choose another head.")
    options = Option("reached", 1.0, ""), Option("not reached", 0.0, "")
    asks = f"In {NAMES[at.kind]}, {_head(*at.head)}: {_GOALS[goal]}."
    return Measured(asks, options, 0, exact=True, why=f"The best query of a plane gives {best:.2f}.")


BEAM, ALPHA, OFFSET = 4, 0.6, 5
"""The paper's beam and length penalty (section 6.1)."""
_SEARCHES = {"greedy": (None, "greedy search"), "sum": (0.0, "the same beam with α = 0")}


def search(at: Asking) -> Measured:
    """Whether a beam of four, ranked with the paper's length penalty, comes to another translation."""
    model = at.translator()

    def found(alpha: float | None) -> str:
        """The text of a beam with a length penalty, or of greedy search."""
        beam, offset = (1, None) if alpha is None else (BEAM, OFFSET)
        return model.translate(
            at.run.source_text,
            beam_size=beam,
            capture=False,
            interventions=at.run.interventions,
            length_penalty=alpha,
            length_offset=offset,
        ).text

    alpha, name = _SEARCHES[at.question.against]
    best, other = found(ALPHA), found(alpha)
    changed = best != other
    why = f"A beam of {BEAM} with α = {ALPHA} finds “{best}”, {name} “{other}”."
    options = Option("another one", float(changed), ""), Option("the same", float(not changed), "")
    asks = f"A beam of {BEAM} with α = {ALPHA}: does it find another translation than {name}?"
    return Measured(asks, options, 0 if changed else 1, exact=True, why=why)


Change = Callable[[Asking], Intervention]
CHANGES: dict[str, tuple[str, Change]] = {
    "head": ("head {head} of {kind} gives no output", lambda at: do.ablate(at.kind, *at.head)),
    "uniform": (
        "head {head} of {kind} looks at all keys alike",
        lambda at: do.ablate(at.kind, *at.head, by="uniform"),
    ),
    "layer": ("no head of {kind}, layer {layer}, gives output", lambda at: do.ablate(at.kind, at.head[0])),
    "unscaled": (
        "{kind}, layer {layer}, does not divide by √d_k",
        lambda at: do.unscaled(at.kind, at.head[0]),
    ),
    "forward": (
        "the feed-forward network of {side} layer {layer} adds nothing",
        lambda at: do.drop_sublayer(_side(at), at.head[0], "feed_forward"),
    ),
    "encoder-positions": ("the encoder has no positions", lambda at: do.no_positions("encoder")),
    "decoder-positions": ("the decoder has no positions", lambda at: do.no_positions("decoder")),
    "source": ("cross-attention does not see source token {source}", lambda at: do.hide(at.place.source)),
}
"""Changes that a question may name, in words and as an intervention at the place where it is asked."""


def _side(at: Asking) -> str:
    return "encoder" if at.kind is AttentionKind.ENCODER else "decoder"


def _words(at: Asking, change: str) -> str:
    token = at.run.source_tokens[at.place.source]
    return CHANGES[change][0].format(
        kind=NAMES[at.kind],
        head=_head(*at.head),
        layer=at.head[0] + 1,
        side=_side(at),
        source=f"{at.place.source + 1}, “{at.name(token)}”",
    )


def difference(at: Asking) -> Measured:
    """The effect of a change on the translation; of several changes, the one that costs it most."""
    model, changes = at.translator(), at.question.changes
    made = [CHANGES[each][1](at) for each in changes]
    before = tuple(at.run.interventions)
    if len(changes) == 1:
        return _yes_or_no(at, model, (*before, made[0]))

    def log_prob(*more: Intervention) -> float:
        target, changed = at.run.target_ids, (*before, *more)
        return sum(model.force(at.run.source_text, target, capture=False, interventions=changed).log_probs)

    costs = [log_prob() - log_prob(each) for each in made]
    asks = f"Which costs the translation {'more' if len(made) == 2 else 'the most'} log-probability?"
    return _largest(asks, [_words(at, each) for each in changes], costs, " nats")


def _yes_or_no(at: Asking, model: Translator, changes: Sequence[Intervention]) -> Measured:
    def greedy(changes: Sequence[Intervention]) -> str:
        return model.translate(at.run.source_text, beam_size=1, capture=False, interventions=changes).text

    own = at.run.text if at.run.method == "greedy" else greedy(changes[:-1])
    text = greedy(changes)
    changed = text != own
    words = _words(at, at.question.changes[0])
    why = f"The model then writes “{text}”" if changed else f"The model still writes “{text}”"
    options = Option("it changes", float(changed), ""), Option("it stays the same", float(not changed), "")
    asks = f"If {words}: does the translation change?"
    return Measured(asks, options, 0 if changed else 1, exact=True, why=why)


OF: dict[str, Callable[[Asking], Measured]] = {
    "largest-key": largest_key,
    "head-effect": head_effect,
    "candidate": candidate,
    "masked": masked,
    "visible": visible,
    "difference": difference,
    "role": role,
    "entropy": entropy,
    "unsure": unsure,
    "search": search,
    "build": build,
}
"""The measurement of each quantity."""


def measure(
    question: Question,
    run: Translation,
    place: Viewpoint,  # where it is asked
    model: Translator | None = None,  # the model of the run, for questions that run it again
    name: Callable[[str], str] = str,  # how a piece is written
) -> Measured:
    """The answer of a question in a run; UnmeasuredError or InterventionError says why it cannot be asked."""
    if (wrong := question.problem()) is not None:
        raise UnmeasuredError(wrong)
    if (kind := AttentionKind(question.kind)) not in run.config.sites:
        raise UnmeasuredError(f"This model has no {NAMES[kind]}.")
    return OF[question.quantity](Asking(question, run, place, model, name))
