"""Questions about a run: what lessons name is a function in ``QUANTITIES``, measured at the
cursor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from explorer.app.address.kinds import Moves
from explorer.figures.base.labels import number
from explorer.lenses.what_if import arithmetic
from transformer import interventions as do
from transformer.config import AttentionKind, Head
from transformer.interventions import Intervention
from transformer.run import Translation
from transformer.text.kinds import Checked, one_of, whole

if TYPE_CHECKING:
    from transformer.translator import Translator

Values = np.ndarray
ROUNDING = 0.01
"""Numbers are shown with two decimals."""
MOST = 4
"""Most options, ranks and changes of a question."""
BEAM, ALPHA, OFFSET = 4, 0.6, 5
"""The paper's beam and length penalty (section 6.1)."""
NAMES = {
    "encoder": "encoder self-attention",
    "decoder": "masked self-attention",
    "cross": "cross-attention",
}
KINDS = tuple(map(str, AttentionKind))
LAST = "last"
PLACES = {"marked": 0, "after": 1, "before": -1}
"""Rows from the one that the cursor marks."""
Write = Callable[[float], str]
HEAD = "L{} H{}"
SHORT = "This sentence is too short for the question."


@dataclass(frozen=True)
class Question(Checked):
    """A question as a lesson writes it.

    It names no token and no number. ValueError if nobody can ask it.
    """

    quantity: Annotated[str, one_of(*QUANTITIES)]
    # the attention that it is about; `last`: what the outputs of a run rest on, its last kind
    kind: Annotated[str, one_of(LAST, *KINDS)] = LAST
    key: Annotated[str, one_of(*KEYS)] = "next"  # of masked: the key, seen from the row
    place: Annotated[str, one_of(*PLACES)] = (
        "marked"  # the row or step that the cursor marks, or the next one
    )
    # of candidate and largest-key: 1 asks for the most probable token, or the key of the largest
    # weight, …
    rank: Annotated[int, whole(1, MOST)] = 1
    role: Annotated[str, one_of(*ROLES)] = "previous"  # of role: where the head looks
    # of entropy: what is compared, rows or ways of scaling; of head-effect: the heads of all layers
    # or of one
    among: Annotated[str, one_of(*AMONG)] = "rows"
    against: Annotated[str, one_of(*AGAINST)] = (
        "greedy"  # of search: the other way to search or to rank
    )
    goal: Annotated[str, one_of(*GOALS)] = "copy"  # of build: what the query is to do
    changes: tuple[
        Annotated[str, one_of(*CHANGES)], ...
    ] = ()  # of difference: of several, which costs most

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.changes) > MOST:
            raise ValueError(f"changes must be a list of at most {MOST}.")
        if self.quantity == "difference" and not self.changes:
            raise ValueError("changes must name at least one change.")


class Viewpoint(NamedTuple):
    """Where in a run a question is asked; everything counts from 0."""

    step: int  # the decode step
    source: int  # the source token
    # layer and head of each kind of attention; None for one that the run does not have
    encoder: Head | None = None
    decoder: Head | None = None
    cross: Head | None = None

    def moved(self, run: Translation, by: int) -> Viewpoint:
        """The place some rows further; as many back where the sentence has none there."""
        steps = len(run.steps)
        sources = len(run.source_tokens)
        step = _further(self.step, by, steps)
        source = _further(self.source, by, sources)
        return self._replace(step=step, source=source)

    def named(self) -> Moves:
        """Its values by name, without the kinds that the run does not have."""
        values = dict(zip(("step", "source", *KINDS), self, strict=True))
        return {name: value for name, value in values.items() if value is not None}


def _further(place: int, by: int, count: int) -> int:
    """The place some steps further; as many back if there is none; 0 on a side without tokens."""
    if not count:
        return 0
    further = place + by
    if not 0 <= further < count:
        further = place - by
    return further % count


class Option(NamedTuple):
    """A possible answer."""

    name: str  # what it is called
    value: float  # what was measured of it
    label: str = ""  # that number as people read it, with its unit; empty for a rule


@dataclass(frozen=True)
class Measured:
    """A question with its answer."""

    asks: str  # the question in one sentence
    options: tuple[Option, ...]  # in an order that tells nothing
    best: int  # the right one
    # the reason of an answer that is a count or a rule, in which no two options can come close
    why: str = ""

    @property
    def second(self) -> Option:
        """The option whose value is nearest to the best one's; without others, the best itself."""
        best = self.options[self.best]
        wrong = self.options[: self.best] + self.options[self.best + 1 :]
        return min(wrong, key=lambda option: abs(option.value - best.value), default=best)

    @property
    def margin(self) -> float:
        """Distance of the best value to the nearest other one; infinite for a count or a rule."""
        if self.why:
            return math.inf
        return abs(self.options[self.best].value - self.second.value)

    @property
    def has_margin(self) -> bool:
        """True if the best exceeds the second by twice what rounding hides."""
        return self.margin >= 2 * ROUNDING

    def reason(self, choice: int) -> str:
        """Why a choice is right or wrong, in the numbers of this run."""
        best = self.options[self.best]
        chosen = self.options[choice]
        second = self.second
        if self.why:
            return self.why
        if choice != self.best:
            return (
                f"You chose {chosen.name}: {chosen.label}. The answer is {best.name}: {best.label}."
            )
        return f"{best.name}: {best.label}. The nearest other one is {second.name}: {second.label}."


def _nats(value: float) -> str:
    return f"{number(value)} nats"


def _share(log_prob: float) -> str:
    """A probability in per cent, with three digits that count."""
    share = 100 * float(np.exp(log_prob))
    if share <= 1e-6:
        return "0.0 %"
    digits = max(1, 2 - math.floor(math.log10(share)))
    return f"{share:.{digits}f} %"


def _refuse(why: str) -> NoReturn:
    from explorer.lenses.measures.stream import UnmeasuredError

    raise UnmeasuredError(why)


@dataclass(frozen=True, kw_only=True)
class Asking:
    """A question at a place of a run."""

    question: Question
    run: Translation
    place: Viewpoint
    model: Translator | None  # None if the run was opened from a file
    name: Callable[[str], str]  # how a piece is written
    kind: AttentionKind
    head: Head  # the chosen head of that kind
    row: int  # the marked query of that kind
    phrase: str  # the chosen head in words
    weights: Values  # (queries, keys) of the chosen head
    mask: NDArray[np.bool_]  # (queries, keys) True for keys that a query may see
    heads: list[Head]  # every head of the kind

    def translator(self) -> Translator:
        """The model; UnmeasuredError if there is none."""
        return self.model or _refuse(
            "This question runs the model again, and a file holds no model."
        )

    def translated(self, changes: Sequence[Intervention], **way: Any) -> str:
        """What the model writes with changes, searching in a way."""
        options = {"capture": False, "interventions": changes, **way}
        return self.translator().translate(self.run.source_text, **options).text

    def row_name(self, row: int) -> str:
        """A row of the kind's maps, with the token that it reads, or predicts in
        cross-attention."""
        labels = self.run.labels(self.kind)
        if self.kind != "cross":
            return f"row {row + 1}, which reads “{self.name(labels.queries[row])}”"
        tokens = labels.predicted or labels.queries
        return f"row {row + 1}, which predicts “{self.name(tokens[row])}”"


def _spread(values: Values) -> list[int]:
    """The place of the largest value and of others, evenly spread over the order, in their own
    order."""
    order = np.argsort(-values, kind="stable")
    ranks = np.unique(np.linspace(0, len(order) - 1, min(MOST, len(order))).round().astype(int))
    return sorted(int(order[rank]) for rank in ranks)


def _most(
    asks: str, names: Sequence[str], values: Iterable[float], write: Write = number, sign: int = 1
) -> Measured:
    """Which of several has the largest value, or the smallest with ``sign`` −1."""
    if len(names) < 2:
        _refuse("There is only one possible answer here, so nothing is asked.")
    options = tuple(
        Option(name, float(number), write(number))
        for name, number in zip(names, values, strict=True)
    )
    return Measured(asks, options, max(range(len(options)), key=lambda i: sign * options[i].value))


def _rule(asks: str, yes: str, no: str, holds: bool, why: str) -> Measured:
    """A question that is true or not."""
    options = (Option(yes, float(holds)), Option(no, float(not holds)))
    return Measured(asks, options, best=int(not holds), why=why)


def largest_key(at: Asking) -> Measured:
    """The key of a rank among the weights of the row."""
    weights = at.weights[at.row]
    tokens = at.run.labels(at.kind).keys
    order = sorted(map(int, np.flatnonzero(at.mask[at.row])), key=lambda key: -weights[key])
    first = at.question.rank - 1
    keys = sorted(order[first : first + MOST])
    larger = ", ".join(f"“{at.name(tokens[key])}”" for key in order[:first])
    apart = f"apart from {larger}, " if larger else ""
    names = list[str]()
    for key in keys:
        name = f"“{at.name(tokens[key])}”"
        if tokens.count(tokens[key]) > 1:
            name += f" (key {key + 1})"
        names.append(name)
    asks = f"In {at.phrase}, {at.row_name(at.row)}: {apart}which key has the largest weight?"
    return _most(asks, names, weights[keys])


KEYS = ("next", "same")


def masked(at: Asking) -> Measured:
    """The visibility of a key for the marked row, as the mask has it."""
    mask = at.mask
    after = at.question.key == "next"
    row = at.row
    if after:
        row = min(row, mask.shape[1] - 2)
    if not 0 <= row < (key := row + after) + 1 <= mask.shape[1]:
        _refuse(SHORT)
    name = at.name(at.run.labels(at.kind).keys[key])
    sees = bool(mask[row, key])
    asks = f"In {at.phrase}, {at.row_name(row)}: may it see key {key + 1}, “{name}”?"
    state = "visible" if sees else "masked"
    why = (
        f"Row {row + 1} sees {mask[row].sum()} of {mask.shape[1]} keys; key {key + 1} is {state}, "
        f"and its weight is {at.weights[row, key]:.2f}."
    )
    return _rule(asks, "it is visible", "it is masked", sees, why)


def visible(at: Asking) -> Measured:
    """The number of keys that the marked row does not see: the row's number would tell those that
    it sees."""
    sees = int(at.mask[at.row].sum())
    keys = at.mask.shape[1]
    right = keys - sees
    numbers = sorted({right, max(right - 1, 0), min(right + 1, keys - 1), sees, 0})
    if len(numbers) < 2:
        _refuse(SHORT)
    asks = f"In {at.phrase}, {at.row_name(at.row)}: how many of its {keys} cells are masked?"
    why = f"Row {at.row + 1} sees {sees} of {keys} keys, so {right} cells of the row are masked."
    options = tuple(Option(f"{number}", float(number == right)) for number in numbers)
    return Measured(asks, options, numbers.index(right), why)


AMONG = ("rows", "scale", "layer")


def entropy(at: Asking) -> Measured:
    """The row, or way of scaling the marked row, with the smallest entropy."""
    if at.question.among == "rows":
        rows = np.flatnonzero(at.mask.sum(-1) > 1)
        names = [at.row_name(int(row)) for row in rows]
        values = arithmetic.entropy(at.weights[rows])
        chosen = _spread(-values)
        asks = f"In {at.phrase}: which has the smallest entropy?"
        return _most(asks, [names[i] for i in chosen], values[chosen], _nats, -1)
    if at.run.config.sites[at.kind].score != "scaled_dot":
        _refuse(f"The scores of this model's {NAMES[at.kind]} are not divided by √d_k.")
    view = at.run.head(at.kind, *at.head)
    width = view.query.shape[-1]
    raw = view.key.astype(np.float64) @ view.query[at.row].astype(np.float64)
    without = arithmetic.softmax(
        view.scores[at.row] - raw / np.sqrt(width) + raw, view.mask[at.row]
    )
    values = arithmetic.entropy(np.stack([view.weights[at.row], without]))
    asks = f"In {at.phrase}, {at.row_name(at.row)}: which has the smaller entropy?"
    return _most(asks, [f"divided by √{width}", "not divided"], values, _nats, -1)


def candidate(at: Asking) -> Measured:
    """The token of a rank among the candidates of the step."""
    candidates = at.run.steps[at.place.step].alternatives
    first = at.question.rank - 1
    listed = sorted(
        candidates[first : first + MOST], key=lambda option: (option.token, option.token_id)
    )
    more = ", ".join(f"“{at.name(option.token)}”" for option in candidates[:first])
    apart = f"apart from {more}, " if more else ""
    asks = f"At step {at.place.step + 1}: {apart}which token is the most probable?"
    names = [f"“{at.name(option.token)}”" for option in listed]
    return _most(asks, names, [option.log_prob for option in listed], _share)


def unsure(at: Asking) -> Measured:
    """The step whose token, written or given, has the smallest probability."""
    logs = np.array([step.log_prob for step in at.run.steps], np.float64)
    chosen = _spread(-logs)
    names = [f"step {i + 1}, “{at.name(at.run.target_tokens[i])}”" for i in chosen]
    asks = "Which of these tokens was the least probable at its step?"
    return _most(asks, names, -logs[chosen], lambda value: _share(-value))


def after_equal(weights: Values, tokens: Sequence[str]) -> Values:
    """Of each row whose token stood before: its weight on the keys right after those places."""
    sums = list[float]()
    for row, token in enumerate(tokens[: len(weights)]):
        keys = [place + 1 for place in range(row) if tokens[place] == token]
        if keys:
            sums.append(float(weights[row, keys].sum()))
    return np.array(sums)


Looks = Callable[[Values, Sequence[str]], Values]
"""From a head's weights and the tokens of its keys: the weights at one place of each row."""
ROLES: dict[str, tuple[str, Looks | None]] = {
    "previous": ("the key before the query", lambda weights, _: np.diagonal(weights, -1)),
    "next": ("the key after the query", lambda weights, _: np.diagonal(weights, 1)),
    "same": ("the key at the query's own place", lambda weights, _: np.diagonal(weights)),
    "first": ("the first key", lambda weights, _: weights[1:, 0]),
    "end": (
        "the last key of the source, the end of the sentence",
        lambda weights, _: weights[:, -1],
    ),
    "induction": ("the keys right after earlier places of the row's own token", after_equal),
    "aligner": ("which head's strongest links agree best with links made by hand (1 − AER)?", None),
}
"""Place where a head with the role looks, and the weights there, one for each row that has such a
key."""


def role(at: Asking) -> Measured:
    """The head of a list that has a role: its mean weight there is the largest, or its AER the
    least."""
    words, of = ROLES[at.question.role]
    if of is None:
        known = (at.translator().heads or {}).get("heads", {}).get(str(at.kind))
        if at.kind is not AttentionKind.CROSS or not known or "aer" not in known[0][0]:
            _refuse("Nobody measured which head of this model aligns best.")
        return _of_heads(
            at, words, np.array([1 - float(head["aer"]) for layer in known for head in layer])
        )
    if at.question.role == "induction" and not at.run.config.sites[at.kind].own_keys:
        _refuse(f"The keys of {NAMES[at.kind]} are not the tokens of its rows.")
    keys = at.run.labels(at.kind).keys
    weights = [of(at.run.weights(at.kind, *head), keys) for head in at.heads]
    if not weights[0].size:
        _refuse(SHORT)
    asks = f"over all rows, which head puts the most weight on {words}?"
    return _of_heads(at, asks, np.array([weight.mean() for weight in weights], np.float64))


def head_effect(at: Asking) -> Measured:
    """The head of a list that moves log p of the step's token most when it gives no output."""
    from explorer.lenses.measures.effect import Cut, Effects

    keys = tuple(range(len(at.run.labels(at.kind).keys)))
    is_one_layer = at.question.among == "layer"
    heads = [head for head in at.heads if head[0] == at.head[0] or not is_one_layer]
    cuts = [(Cut(at.kind, keys, "zeroed", *head),) for head in heads]
    moved = (
        Effects(at.translator(), at.run).of(cuts)[:, at.place.step].abs().numpy().astype(np.float64)
    )
    token = at.name(at.run.target_tokens[at.place.step])
    asks = f"which one moves log p of “{token}” most when it is switched off?"
    return _of_heads(replace(at, heads=heads), asks, moved, _nats)


def _of_heads(at: Asking, asks: str, values: Values, write: Write = number) -> Measured:
    """A question about some heads: that of the largest value, and others spread over the order."""
    chosen = _spread(values)
    names = [HEAD.format(at.heads[i][0] + 1, at.heads[i][1] + 1) for i in chosen]
    return _most(f"Of these heads of {NAMES[at.kind]}: {asks}", names, values[chosen], write)


GOALS = ("copy", "average")


def build(at: Asking) -> Measured:
    """Whether a query in the plane of two keys reaches a goal: asked only where one does."""
    from explorer.lenses.what_if.build import COPY, HALF, NEAR, plane_of, short_of

    goal = at.question.goal
    best, _ = plane_of(at.run, (at.kind, *at.head), at.row, None, goal).best(goal)
    if short_of(goal, best, best) > 0:
        _refuse("Of the pairs of keys that were tried, none allows it: choose another head.")
    gives = f"two keys a weight of {HALF} ± {NEAR} each"
    if goal == "copy":
        gives = f"one key a weight of at least {COPY}"
    asks = f"In {at.phrase}: build a query that gives {gives}."
    return _rule(
        asks, "reached", "not reached", True, f"The best query of a plane gives {best:.2f}."
    )


AGAINST = {"greedy": (None, "greedy search"), "sum": (0.0, "the same beam with α = 0")}
"""Length penalty of the other search, None for greedy search; and its name."""


def search(at: Asking) -> Measured:
    """Whether a beam of four, ranked with the paper's length penalty, comes to another
    translation."""
    alpha, name = AGAINST[at.question.against]
    beam = {"beam_size": BEAM, "length_penalty": ALPHA, "length_offset": OFFSET}
    best = at.translated(at.run.interventions, **beam)
    way = {"beam_size": 1} if alpha is None else beam | {"length_penalty": alpha}
    translated = at.translated(at.run.interventions, **way)
    why = f"A beam of {BEAM} with α = {ALPHA} finds “{best}”, {name} “{translated}”."
    asks = f"A beam of {BEAM} with α = {ALPHA}: does it find another translation than {name}?"
    return _rule(asks, "another one", "the same", best != translated, why)


CHANGES: dict[str, Callable[[Asking], Intervention]] = {
    "head": lambda at: do.ablate(at.kind, *at.head),
    "uniform": lambda at: do.ablate(at.kind, *at.head, by="uniform"),
    "layer": lambda at: do.ablate(at.kind, at.head[0]),
    "unscaled": lambda at: do.unscaled(at.kind, at.head[0]),
    "forward": lambda at: do.drop_sublayer(
        at.kind.replace("cross", "decoder"), at.head[0], "feed_forward"
    ),
    "encoder-positions": lambda at: do.no_positions("encoder"),
    "decoder-positions": lambda at: do.no_positions("decoder"),
    "source": lambda at: do.hide(at.place.source),
}
"""Changes that a question may name, at the place where it is asked."""


def difference(at: Asking) -> Measured:
    """The effect of a change on the translation; of several changes, the one that costs it most."""
    run = at.run
    if not run.source_tokens:
        _refuse("This question compares translations, and this model writes none.")
    token = f"source token {at.place.source + 1}"
    word = f"{token}, “{at.name(run.source_tokens[at.place.source])}”,"
    changes_made = [CHANGES[change](at) for change in at.question.changes]
    names = [str(change).replace(token, word) for change in changes_made]
    if len(changes_made) == 1:
        before = (
            run.text if run.method == "greedy" else at.translated(run.interventions, beam_size=1)
        )
        text = at.translated((*run.interventions, *changes_made), beam_size=1)
        why = f"The model {'then' if text != before else 'still'} writes “{text}”"
        asks = f"If {names[0]}: does the translation change?"
        return _rule(asks, "it changes", "it stays the same", text != before, why)
    asks = "Which costs the translation "
    log_probs = list[float]()
    asks += f"{'more' if len(changes_made) == 2 else 'the most'} log-probability?"
    for changes in (run.interventions, *((*run.interventions, change) for change in changes_made)):
        forced = at.translator().again(run, capture=False, interventions=changes)
        log_probs.append(sum(forced.log_probs))
    return _most(asks, names, [log_probs[0] - log_prob for log_prob in log_probs[1:]], _nats)


_MEASURES = (
    *(largest_key, head_effect, candidate, masked, visible),
    *(difference, role, entropy, unsure, search, build),
)
QUANTITIES = {quantity.__name__.replace("_", "-"): quantity for quantity in _MEASURES}
"""All that can be asked, and how it is measured."""


def kind_of(question: Question, run: Translation) -> AttentionKind:
    """The kind of attention of a run that a question is about."""
    if question.kind == LAST:
        return run.config.last_kind
    return AttentionKind(question.kind)


def measure(
    question: Question,
    run: Translation,
    place: Viewpoint,
    model: Translator | None = None,
    name: Callable[[str], str] = str,
) -> Measured:
    """The answer of a question in a run.

    UnmeasuredError or InterventionError says why it cannot be asked.
    """
    kind = kind_of(question, run)
    place = place.moved(run, PLACES[question.place])
    if (head := getattr(place, kind)) is None:
        _refuse(f"This model has no {NAMES[kind]}.")
    row = place.source if kind == "encoder" else place.step
    asking = Asking(
        question=question,
        run=run,
        place=place,
        model=model,
        name=name,
        kind=kind,
        head=head,
        row=row,
        phrase=f"{NAMES[kind]}, {HEAD.format(head[0] + 1, head[1] + 1)}",
        weights=run.weights(kind, *head),
        mask=run.mask(kind, *head),
        heads=[*np.ndindex(*run.config.sizes[kind])],
    )
    return QUANTITIES[question.quantity](asking)
