"""Same length in and out: every position predicts its next token, by comparing with what came
before."""

from html import escape

import streamlit as st

from explorer.app.address import State
from explorer.app.controls import pickers, seen
from explorer.app.maps import display
from explorer.app.maps.explorer import Scene, explorer
from explorer.app.maps.looking import Looks
from explorer.app.server.view import View
from explorer.app.shell import needs
from explorer.figures.base import labels
from explorer.figures.base.labels import chance, count
from explorer.linked.view.feeds import window_around
from explorer.linked.view.home import Layout
from transformer.run import Translation

KIND = "decoder"
LAYOUT = Layout("training_lengths", "page", ("target",), (), KIND)
POSITIONS = 12  # most in the table
SEEING = (
    "Position i compares its query with the keys of all positions up to i. Softmax turns the "
    "scores into weights, and y is the sum of the values, each times its weight: n tokens in, n "
    "vectors out, each of which predicts the token that follows."
)
FORMULA = (
    r"y_i = \sum_{j \le i} \alpha_{ij}\, v_j, \qquad \alpha_i = \mathrm{softmax}_{j \le i}(s_{ij})"
)


def note(run: Translation) -> str:
    right = sum(step.token_id == step.alternatives[0].token_id for step in run.steps)
    n = len(run.steps)
    return (
        f"{n} tokens in, {n} predictions out, all from one pass. {right} of the {n} tokens that "
        "follow are the model's most probable ones."
    )


def show(opened: View, now: State) -> None:
    if needs.tell_lack(opened.source, (KIND,)):
        return
    run = opened.translation
    st.caption(note(run))

    def above(now: State, looks: Looks) -> None:
        pickers.head_picker(KIND, looks[KIND].head, opened.source)

    def beside(now: State, looks: Looks) -> None:
        st.html(positions_table(run, min(now.step or 0, len(run.steps) - 1)))

    def below(now: State, looks: Looks) -> None:
        with st.container(horizontal=True, vertical_alignment="center"):
            display.tables(lambda: [looks[KIND].read()])
            seen(SEEING, FORMULA)

    explorer(Scene(LAYOUT, opened, (KIND,), below=below, above=above, beside=beside))


def positions_table(run: Translation, at: int) -> str:
    """Positions, what they read, what they predict, and what follows, as HTML.

    The cursor's stands out.
    """
    places = range(*window_around(len(run.steps), at, POSITIONS))
    lines: dict[str, list[str]] = {"position": [], "reads": [], "predicts": [], "then comes": []}
    for i in places:
        step = run.steps[i]
        guess = run.steps[i].alternatives[0]
        share = "✓" if step.token_id == guess.token_id else chance(step.log_prob)
        best = f"<b>{_word(guess.token)}</b><small>{chance(guess.log_prob)}</small>"
        after = f"{_word(step.token)}<small>{share}</small>"
        row = str(count(i)), _word(run.decoder_input_tokens[i]), best, after
        for cells, text in zip(lines.values(), row, strict=True):
            cells.append(text)
    marks = [" class=at" if i == at else "" for i in places]
    rows = ""
    for name, cells in lines.items():
        data_cells = "".join(
            f"<td{mark}>{cell}</td>" for mark, cell in zip(marks, cells, strict=True)
        )
        rows += f"<tr><th scope=row>{name}</th>{data_cells}</tr>"
    caption = (
        f"Positions {count(places[0])} to {places[-1] + 1} of {len(run.steps)}: move the cursor "
        "for others."
    )
    cut = f"<p><small>{caption}</small></p>" if len(places) < len(run.steps) else ""
    return f'<div class="lm-frame"><table class="lm-line">{rows}</table></div>{cut}'


def _word(token: str) -> str:
    return escape(labels.shorten(labels.piece(token)))
