"""Same length in and out: every position predicts its next token, by comparing with what came before."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import streamlit as st

from explorer.app.address import State
from explorer.app.controls import pickers, plain, seen
from explorer.app.maps import display
from explorer.app.maps.explorer import Scene, Strips, explorer, no_more
from explorer.app.maps.looking import HeadSelection, Looks
from explorer.app.sections.language_model.view import KIND, SIDES
from explorer.app.server.opened import Opened
from explorer.figures.base import labels
from explorer.figures.base.bars import percent
from explorer.linked.view import Layout, window_around
from transformer.run import Translation
from transformer.view import Array, HeadView

EXAMPLES = {
    "a sentence": "The cat sat on the mat and looked at me.",
    "a question": "Do you know what time it is?",
    "copying": "red blue green, red blue green",
}
LAYOUT = Layout("language_lengths", "page", ("target",), (), KIND)
_POSITIONS = 12
"""Most positions in one table."""
_DIMENSIONS = 5
"""Dimensions of a vector that are written."""
_THIRD = 2
_SEEING = (
    "Position i reads its token and computes a query. The query is compared with the keys of all positions "
    "up to i: the scores. Softmax turns the scores into weights that sum to 1, and the output y is the sum "
    "of the values, each times its weight. So n tokens in give n vectors out, and each of them predicts the "
    "token that follows."
)
_FORMULA = r"y_i = \sum_{j \le i} \alpha_{ij}\, v_j, \qquad \alpha_i = \mathrm{softmax}_{j \le i}(s_{ij})"
MOST = 10
"""Most keys that a table shows one by one."""


def first(run: Translation) -> int:
    """The step that opens first: the third, as in y₃ = α₃₁v₁ + α₃₂v₂ + α₃₃v₃."""
    return min(_THIRD, len(run.target_tokens) - 1)


def told(run: Translation) -> str:
    """Numbers of tokens in and out, and of predictions that hold."""
    right = sum(step.token_id == step.alternatives[0].token_id for step in run.steps)
    count = len(run.steps)
    return (
        f"{count} tokens in, {count} predictions out, all from one pass. "
        f"{right} of the {count} tokens that follow are the model's most probable ones."
    )


def show(opened: Opened, run: Translation) -> None:
    def above(now: State, looks: Looks) -> None:
        with st.container(width=260):
            pickers.head_picker(KIND, looks[KIND].head, opened.source)

    def beside(now: State, looks: Looks) -> None:
        step = min(now.step or 0, len(run.steps) - 1)
        st.html(rows_table(run, step))
        _sum(looks[KIND], run, step)

    def below(now: State, looks: Looks) -> None:
        with st.container(horizontal=True, vertical_alignment="center"):
            display.tables(lambda: [looks[KIND].read()])
            seen(_SEEING, _FORMULA)

    strips = Strips(sides=SIDES)
    explorer(Scene(LAYOUT, opened, (KIND,), no_more, below, above=above, beside=beside, strips=strips))


def rows_table(run: Translation, step: int) -> str:
    """Positions, what they read, what they predict, and what follows, as HTML; the cursor's stands out."""
    start, stop = window_around(len(run.steps), step, _POSITIONS)
    places = range(start, stop)
    lines = {
        "position": [str(labels.count(i)) for i in places],
        "reads": [_word(run.decoder_input_tokens[i]) for i in places],
        "predicts": [_prediction(run, i) for i in places],
        "then comes": [_following(run, i) for i in places],
    }
    body = "".join(_line(name, cells, step - start) for name, cells in lines.items())
    return f'<div class="lm-frame"><table class="lm-line">{body}</table></div>'


def _line(name: str, cells: Iterable[str], at: int) -> str:
    columns = [f"<td{' class=at' * (i == at)}>{cell}</td>" for i, cell in enumerate(cells)]
    return f"<tr><th scope=row>{name}</th>{''.join(columns)}</tr>"


def _word(token: str) -> str:
    return escape(labels.shorten(labels.piece(token)))


def _prediction(run: Translation, place: int) -> str:
    best = run.steps[place].alternatives[0]
    return f"<b>{_word(best.token)}</b><small>{percent(math.exp(best.log_prob))}</small>"


def _following(run: Translation, place: int) -> str:
    step = run.steps[place]
    right = step.token_id == step.alternatives[0].token_id
    return f"{_word(step.token)}<small>{'✓' if right else percent(math.exp(step.log_prob))}</small>"


def _sum(look: HeadSelection, run: Translation, step: int) -> None:
    """The output of the chosen head at the cursor's position, with its numbers."""
    layer, head = look.head
    found = weighted_sum(run.head(KIND, layer, head), step)
    where = f"{labels.head_phrase(layer, head)}, position {labels.count(step)}"
    st.markdown(f"##### Attention compares with what came before: {where}")
    st.latex(formula(found))
    st.html(sum_table(found))
    st.caption(
        plain(
            f"The first {_DIMENSIONS} of {len(found.used)} dimensions · largest difference between this sum "
            f"and the output that the model went on with: {labels.scientific(found.error)} · {run.model}"
        )
    )


def formula(found: WeightedSum) -> str:
    """The sum with its weights, the largest ones first if there are many."""
    i = labels.count(found.position)
    best = sorted(sorted(found.shown(), key=lambda j: -found.weights[j])[:4])
    terms = " + ".join(rf"{found.weights[j]:.2f}\,v_{{{labels.count(j)}}}" for j in best)
    more = r" + \dots" if len(best) <= found.position else ""
    return rf"y_{{{i}}} = \sum_{{j \le {i}}} \alpha_{{{i}j}}\,v_j = {terms}{more}"


def sum_table(found: WeightedSum) -> str:
    """Scores, weights and values of the keys, and their sum beside the model's output, as HTML."""
    i = labels.count(found.position)
    dimensions = [f"v<sub>j,{labels.count(d)}</sub>" for d in range(min(_DIMENSIONS, len(found.used)))]
    names = ["j", "token", f"score s<sub>{i}j</sub>", f"weight α<sub>{i}j</sub>", *dimensions]
    heads = "".join(f"<th scope=col{' class=token' * (name == 'token')}>{name}</th>" for name in names)
    lines = [_key(found, j) for j in found.shown()]
    if others := found.others():
        lines.append(_rest(found, others))
    lines.append(
        _end(f"y<sub>{i}</sub> = Σ α<sub>{i}j</sub> v<sub>j</sub>", found.weights.sum(), found.total)
    )
    lines.append(_end("the model’s own output", None, found.used))
    return f'<div class="lm-frame"><table class="lm-sum"><tr>{heads}</tr>{"".join(lines)}</table></div>'


def _key(found: WeightedSum, j: int) -> str:
    token, score, weight = _word(found.tokens[j]), float(found.scores[j]), float(found.weights[j])
    bar = f'<i style="--share:{100 * weight:.0f}%"></i>'
    return (
        f"<tr><td>{labels.count(j)}</td><td class=token>{token}</td><td>{labels.number(score)}</td>"
        f"<td class=weight>{bar}{weight:.2f}</td>{_numbers(found.values[j])}</tr>"
    )


def _rest(found: WeightedSum, others: Sequence[int]) -> str:
    """The keys that are not shown: their weights together, and the mean of their values by weight."""
    weights = found.weights[others]
    mean = weights @ found.values[others] / max(float(weights.sum()), 1e-12)
    return (
        f"<tr class=quiet><td></td><td class=token>{len(others)} others, their mean</td><td></td>"
        f"<td class=weight>{weights.sum():.2f}</td>{_numbers(mean)}</tr>"
    )


def _end(name: str, weight: float | None, vector: np.ndarray) -> str:
    total = "" if weight is None else f"{weight:.2f}"
    return (
        f"<tr class=end><td></td><td class=token colspan=2>{name}</td><td class=weight>{total}</td>"
        f"{_numbers(vector)}</tr>"
    )


def _numbers(vector: np.ndarray) -> str:
    return "".join(f"<td>{labels.number(float(value), '.3f')}</td>" for value in vector[:_DIMENSIONS])


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """y_i = Σ α_ij v_j over j ≤ i, for one query of one head; positions count from 0."""

    position: int  # i
    tokens: Sequence[str]  # what the positions 0 to i read
    scores: Array  # (i + 1,) scaled, with bias
    weights: Array  # (i + 1,) α
    values: Array  # (i + 1, d_head) v
    total: np.ndarray  # (d_head,) Σ α v, computed here in float64
    used: Array  # (d_head,) the output with which the model went on

    @property
    def error(self) -> float:
        """The largest difference between the sum and the model's output."""
        return float(np.abs(self.total - self.used).max())

    def shown(self) -> list[int]:
        """The keys of most weight, in reading order."""
        best = np.argsort(-self.weights, kind="stable")[:MOST]
        return sorted(int(j) for j in best)

    def others(self) -> list[int]:
        """The keys that are not shown one by one."""
        shown = set(self.shown())
        return [j for j in range(self.position + 1) if j not in shown]


def weighted_sum(
    view: HeadView,  # a whole head of masked self-attention
    position: int,  # the query, from 0
) -> WeightedSum:
    """The sum of one query."""
    seen = slice(0, position + 1)
    weights, values = view.weights[position, seen], view.value[seen]
    return WeightedSum(
        position,
        view.key_tokens[seen],
        view.scores[position, seen],
        weights,
        values,
        weights.astype(np.float64) @ values.astype(np.float64),
        view.output[position],
    )
