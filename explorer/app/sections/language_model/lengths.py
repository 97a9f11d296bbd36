"""Same length in and out: every position predicts its next token, by comparing with what came before."""

import math
from collections.abc import Iterable
from html import escape

import numpy as np
import streamlit as st

from explorer.app.address import State
from explorer.app.controls import pickers, plain, seen
from explorer.app.maps import display
from explorer.app.maps.explorer import Scene, Strips, explorer
from explorer.app.maps.looking import Looks
from explorer.app.sections.language_model.generation import KIND, SIDES
from explorer.app.server.view import View
from explorer.figures.base import labels
from explorer.figures.base.bars import percent
from explorer.figures.base.labels import count, number
from explorer.linked.view.feeds import window_around
from explorer.linked.view.home import Layout
from transformer.run import Translation
from transformer.view import HeadView

EXAMPLES = {
    "a sentence": "The cat sat on the mat and looked at me.",
    "a question": "Do you know what time it is?",
    "copying": "red blue green, red blue green",
}
LAYOUT = Layout("language_lengths", "page", ("target",), (), KIND)
POSITIONS, KEYS, DIMENSIONS = 12, 10, 5  # most in one table
SEEING = (
    "Position i compares its query with the keys of all positions up to i. Softmax turns the scores into "
    "weights, and y is the sum of the values, each times its weight: n tokens in, n vectors out, each of "
    "which predicts the token that follows."
)
FORMULA = r"y_i = \sum_{j \le i} \alpha_{ij}\, v_j, \qquad \alpha_i = \mathrm{softmax}_{j \le i}(s_{ij})"


def first(run: Translation) -> int:
    """The step that opens first: the third, as in y₃ = α₃₁v₁ + α₃₂v₂ + α₃₃v₃."""
    return min(2, len(run.target_tokens) - 1)


def note(run: Translation) -> str:
    right, n = sum(step.token_id == step.alternatives[0].token_id for step in run.steps), len(run.steps)
    return (
        f"{n} tokens in, {n} predictions out, all from one pass. {right} of the {n} tokens that follow are "
        "the model's most probable ones."
    )


def show(opened: View) -> None:
    run = opened.translation

    def above(now: State, looks: Looks) -> None:
        with st.container(width=260):
            pickers.head_picker(KIND, looks[KIND].head, opened.source)

    def beside(now: State, looks: Looks) -> None:
        i, (layer, head) = min(now.step or 0, len(run.steps) - 1), looks[KIND].head
        st.html(positions_table(run, i))
        view = run.head(KIND, layer, head)
        where = f"{labels.head_phrase(layer, head)}, position {count(i)}"
        st.markdown(f"##### Attention compares with what came before: {where}")
        st.latex(sum_formula(view.weights[i, : i + 1]))
        st.html(sum_table(view, i))
        error = labels.scientific(float(np.abs(weighted_sum(view, i) - view.output[i]).max()))
        differ = f"largest difference between this sum and the model's own output: {error}"
        shown = f"The first {DIMENSIONS} of {view.output.shape[1]} dimensions"
        st.caption(plain(f"{shown} · {differ} · {run.model}"))

    def below(now: State, looks: Looks) -> None:
        with st.container(horizontal=True, vertical_alignment="center"):
            display.tables(lambda: [looks[KIND].read()])
            seen(SEEING, FORMULA)

    strips = Strips(sides=SIDES)
    explorer(Scene(LAYOUT, opened, (KIND,), below=below, above=above, beside=beside, strips=strips))


def positions_table(run: Translation, at: int) -> str:
    """Positions, what they read, what they predict, and what follows, as HTML; the cursor's stands out."""
    places = range(*window_around(len(run.steps), at, POSITIONS))

    lines: dict[str, list[str]] = {"position": [], "reads": [], "predicts": [], "then comes": []}
    for i in places:
        step, guess = run.steps[i], run.steps[i].alternatives[0]
        share = "✓" if step.token_id == guess.token_id else percent(math.exp(step.log_prob))
        best = f"<b>{_word(guess.token)}</b><small>{percent(math.exp(guess.log_prob))}</small>"
        after = f"{_word(step.token)}<small>{share}</small>"
        row = str(count(i)), _word(run.decoder_input_tokens[i]), best, after
        for cells, text in zip(lines.values(), row, strict=True):
            cells.append(text)
    marks = [" class=at" * (i == at) for i in places]
    rows = (
        _row(f"<th scope=row>{name}</th>", (f"<td{m}>{c}</td>" for m, c in zip(marks, cells, strict=True)))
        for name, cells in lines.items()
    )
    return f'<div class="lm-frame"><table class="lm-line">{"".join(rows)}</table></div>'


def weighted_sum(view: HeadView, i: int) -> np.ndarray:
    """(d_head,) Σ α_ij v_j over j ≤ i, in float64."""
    return view.weights[i, : i + 1].astype(np.float64) @ view.value[: i + 1].astype(np.float64)


def sum_formula(weights: np.ndarray) -> str:
    """The sum of the last of (i + 1,) positions with its largest weights."""
    i = len(weights)
    best = sorted(np.argsort(-weights, kind="stable")[:4].tolist())
    terms = " + ".join(rf"{weights[j]:.2f}\,v_{{{count(j)}}}" for j in best)
    more = r" + \dots" if len(best) < i else ""
    return rf"y_{{{i}}} = \sum_{{j \le {i}}} \alpha_{{{i}j}}\,v_j = {terms}{more}"


def sum_table(view: HeadView, i: int) -> str:
    """Scores, weights and values of the keys up to i, and their sum beside the model's output, as HTML."""
    weights, values, n = view.weights[i, : i + 1], view.value[: i + 1], count(i)
    shown = sorted(np.argsort(-weights, kind="stable")[:KEYS].tolist())
    others = [j for j in range(i + 1) if j not in shown]

    def vector(of: np.ndarray) -> list[str]:
        return [f"<td>{number(float(value), '.3f')}</td>" for value in of[:DIMENSIONS]]

    def total(name: str, weight: str, of: np.ndarray) -> str:
        cells = f"<td></td><td class=token colspan=2>{name}</td><td class=weight>{weight}</td>"
        return _row(cells, vector(of), " class=end")

    names = ["j", "token", f"score s<sub>{n}j</sub>", f"weight α<sub>{n}j</sub>"]
    names += [f"v<sub>j,{count(d)}</sub>" for d in range(min(DIMENSIONS, values.shape[1]))]
    rows = [_row("", (f"<th scope=col{' class=token' * (name == 'token')}>{name}</th>" for name in names))]
    for j in shown:
        token, score = _word(view.key_tokens[j]), number(float(view.scores[i, j]))
        bar = f'<i style="--share:{100 * weights[j]:.0f}%"></i>{weights[j]:.2f}'
        cells = f"<td>{count(j)}</td><td class=token>{token}</td><td>{score}</td><td class=weight>{bar}</td>"
        rows.append(_row(cells, vector(values[j])))
    if others:
        mass = weights[others].sum()
        mean = weights[others] @ values[others] / max(float(mass), 1e-12)
        cells = f"<td></td><td class=token>{len(others)} others, their mean</td><td></td>"
        rows.append(_row(f"{cells}<td class=weight>{mass:.2f}</td>", vector(mean), " class=quiet"))
    name = f"y<sub>{n}</sub> = Σ α<sub>{n}j</sub> v<sub>j</sub>"
    rows.append(total(name, f"{weights.sum():.2f}", weighted_sum(view, i)))
    rows.append(total("the model’s own output", "", view.output[i]))
    return f'<div class="lm-frame"><table class="lm-sum">{"".join(rows)}</table></div>'


def _word(token: str) -> str:
    return escape(labels.shorten(labels.piece(token)))


def _row(first: str, cells: Iterable[str], mark: str = "") -> str:
    return f"<tr{mark}>{first}{''.join(cells)}</tr>"
