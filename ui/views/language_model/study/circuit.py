"""The two heads of the induction circuit: what one reads of the other, one path cut, and heads as "
"matrices."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from figures.base import labels
from figures.base.bars import percent
from figures.base.labels import number
from figures.maps.measures import part_bars
from figures.pages.heads import Cell, head_grid
from transformer.model.sites import Head
from transformer.trace.view import Array
from ui.controls import Table, panel
from ui.server.language import circuits
from ui.server.language.circuits import Circuit, Matrices

KIND, _SHOWN, _HIGH = "decoder", 8, 0.5
_READING = (
    "The score q·k is linear in what the key was made of, once the σ of the LayerNorm before it is held "
    "fixed: the token, every earlier head, every earlier feed-forward network, and biases. The bars are "
    "what each added to the score of the right key (the piece that followed the same piece before), minus "
    "what it added to the other keys that the row sees; mean over the rows of the second copy. They sum to "
    "the advantage."
)
_CUTTING = (
    "Only one path is cut: where the later head makes its keys (or its queries, or its values), what the "
    "earlier head wrote is taken out of the stream that it reads. Everybody else still reads it, the later "
    "layers too. If the later head then no longer finds the right key, it was found by what the earlier head "
    "had written."
)
_MATRICES = (
    "From the weights alone, without a text. **Copies**: the matrix from the token that is read to the "
    "logits, through W_V W_O: 1 if every token raises its own logit. **Looks for the same**: the matrix "
    "from the query's token to the key's, through W_Q, a rotation by the distance, and W_K. **Through** "
    "another head: the key's token is the one that this head passed on. The number is Σ λ / Σ |λ| over the "
    "matrix's eigenvalues, from −1 to 1 (Elhage et al. 2021); σ, biases, and every other path are left out."
)


def show(model: str, seed: int, writer: Head, reader: Head) -> None:
    """Draws the part below the sentence about the two heads."""
    found = circuits.circuit(model, seed, writer, reader)
    names = labels.head_phrase(*writer), labels.head_phrase(*reader)
    st.markdown(told(found, *names))
    where = f"{found.sequences} sequences of {found.length} random pieces, said twice"
    panel(
        "circuit reading",
        lambda: part_bars(*_largest(found), "score"),
        f"Advantage of the right key in the score of {names[1]}, by what wrote the key's stream · {where} · "
        f"{model}",
        lambda: [
            ("written by", "part of the advantage"),
            *zip(found.names, found.parts.tolist(), strict=True),
        ],
        seeing=_READING,
        audit=found.audit,
        sentence=False,
    )
    st.markdown(f"**One path cut: from {names[0]} into {names[1]}**")
    st.markdown(cut(found, writer))
    st.caption(f"{_CUTTING} {where.capitalize()}.")
    st.markdown("##### Every head as a matrix")
    made = circuits.matrices(model, found.length, writer)
    st.markdown(matched(made, labels.head_name(*writer), reader))
    tables = {
        "copies": made.copying,
        f"looks for the same, {made.distance} pieces back": made.matching,
        f"the same, through {labels.head_name(*writer)}": made.through,
    }
    for place, (name, values) in zip(st.columns(len(tables), gap="medium"), tables.items(), strict=True):
        with place:
            st.markdown(f"**{name[:1].upper()}{name[1:]}**")
            panel(
                f"matrix {name}",
                partial(head_grid, _cells(values, name), KIND, reader),
                f"Σ λ / Σ |λ| of every head; framed: {names[1]} · {model}",
                lambda: _table(made),
                seeing=_MATRICES,
                inked=True,
                sentence=False,
            )


def told(found: Circuit, writer: str, reader: str) -> str:
    """How much of the right key's advantage the earlier head wrote."""
    total, own = float(found.parts.sum()), found.of_writer
    others = sorted(
        (
            (value, name)
            for name, value in zip(found.names, found.parts.tolist(), strict=True)
            if value != own
        ),
        reverse=True,
    )
    share = f" ({percent(own / total)})" if total > 0 and 0 <= own <= total else ""
    return (
        f"In {reader}, the right key's score is **{number(total, '+.2f')}** above that of the other keys. "
        f"**{number(own, '+.2f')}**{share} of it is what {writer} wrote into the stream of the key; next "
        f"come {others[0][1]} ({number(others[0][0], '+.2f')}) and {others[1][1]} "
        f"({number(others[1][0], '+.2f')})."
    )


def cut(found: Circuit, writer: Head) -> str:
    """Weight on the right key and loss of the second copy, whole and with each path cut, in Markdown."""
    lines = ["| cut | weight on the right key | loss of the second copy, nats a piece |", "|---|---:|---:|"]
    lines.append(f"| nothing | {found.whole.weight:.3f} | {found.whole.loss:.2f} |")
    names = {"key": "its keys", "query": "its queries", "value": "its values"}
    for into, each in found.cut.items():
        lines.append(f"| the path into {names[into]} | {each.weight:.3f} | {each.loss:.2f} |")
    if found.others:
        weights, losses = ([getattr(each, name) for each in found.others] for name in ("weight", "loss"))
        lines.append(
            f"| the path of each other head of layer {labels.count(writer[0])} into its keys | "
            f"{min(weights):.3f} to {max(weights):.3f} | {min(losses):.2f} to {max(losses):.2f} |"
        )
    return "\n".join(lines)


def matched(made: Matrices, writer: str, reader: Head) -> str:
    """What the matrices say of the later head, and of how many others."""
    through, plain = (float(each[reader]) for each in (made.through, made.matching))
    later = made.through[np.isfinite(made.through)]
    alike = int((later > _HIGH).sum())
    return (
        f"{labels.head_phrase(*reader).capitalize()} copies with "
        f"{number(float(made.copying[reader]), '+.2f')} and looks for its own token with "
        f"{number(plain, '+.2f')}, through {writer} with {number(through, '+.2f')}. Above +{_HIGH} through "
        f"{writer} are {alike} of {len(later)} later heads: "
        "matrices say what a head could do with what another wrote; the run says which head does it."
    )


def _largest(found: Circuit) -> tuple[list[str], np.ndarray]:
    order = np.argsort(-np.abs(found.parts), kind="stable")
    shown = sorted(order[:_SHOWN], key=lambda at: -found.parts[at])
    names, values = [found.names[at] for at in shown], [float(found.parts[at]) for at in shown]
    if len(order) > _SHOWN:
        names.append(f"{len(order) - _SHOWN} others")
        values.append(float(found.parts[order[_SHOWN:]].sum()))
    return names, np.array(values)


def _cells(values: Array, name: str) -> list[list[Cell]]:
    return [
        [_cell(float(value), name, (i, j)) for j, value in enumerate(row)] for i, row in enumerate(values)
    ]


def _cell(value: float, name: str, place: Head) -> Cell:
    if value != value:
        return Cell(None, "", "", f"{labels.head_phrase(*place)}\nreads nothing of it")
    said = number(value, "+.2f")
    return Cell(value, said, "", f"{labels.head_phrase(*place)}\n{name} {said}")


def _table(made: Matrices) -> Table:
    rows = [
        (
            labels.count(i),
            labels.count(j),
            float(value),
            float(made.matching[i, j]),
            float(made.through[i, j]),
        )
        for (i, j), value in np.ndenumerate(made.copying)
    ]
    return [("layer", "head", "copying", "matching", "matching through"), *rows]
