"""The visitor's words in other places: two words exchanged, or the whole sentence moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import inform, options, panel, pickers, plain
from explorer.app.server import catalogue, models
from explorer.app.server.catalogue import twin_title as title
from explorer.app.server.opened import Opened
from explorer.app.server.per_run import rearranged
from explorer.app.views.positions.encodings import fitted
from explorer.app.views.positions.twins import CELLS, COLUMNS, MAP, TwinTranslation, heads_shown, told
from explorer.figures.base import captions, labels
from explorer.figures.maps.difference import difference_map, scale_end
from explorer.figures.pages.positions import Interval, dots
from explorer.lenses.what_if.rearranged import Swapped, encode_moved, swap_words, words_of
from explorer.linked.view import window_around
from transformer.config import Head
from transformer.trace import AttentionTrace

V = TypeVar("V")
_SWAP = (1, 5)
_STILL = 0.0005
"""A weight that changes by less than this changes by 0 to three decimals."""


@dataclass(frozen=True, eq=False)
class Move:
    """A twin's encoder that read the sentence twice."""

    here: AttentionTrace  # the trace of the sentence in its place
    there: AttentionTrace  # the trace of the sentence moved
    change: Interval  # the largest change of a weight in each head: mean, smallest and largest over all heads
    verified: bool  # whether both traces passed their audit

    def weights(self, head: Head) -> tuple[np.ndarray, np.ndarray]:
        """A head's map, (tokens, tokens), of the moved sentence and of the one in place."""
        there, here = (trace.weights("encoder", *head) for trace in (self.there, self.here))
        return there, here


def swap(
    opened: Opened,  # the sentence
    runs: list[TwinTranslation],  # the translations of the sentence by the twins
    asked: tuple[int, int] | None,  # the places of the two words, from 0
) -> None:
    """Exchanges two words, and shows which encoders and translations notice."""
    st.markdown("##### Exchange two words: which encodings notice?")
    some = runs[0].translation
    words = [word.text for word in words_of(some.source_tokens)]
    if len(words) < 2:
        inform("The sentence needs two words.")
        return
    places = asked or tuple(min(each, len(words) - 1) for each in _SWAP)
    pair = [fitted("word", each, len(words) - 1) for each in places]
    if pair[0] == pair[1]:
        pair[0] = 0 if pair[1] else 1
    left, right = st.columns(2, gap="large")
    with left:
        for end, column in enumerate(st.columns(2)):
            with column:
                _word(words, pair, end)
    with st.spinner("Translating again with every twin"):
        found, refused = _each(runs, lambda name: _swapped(name, opened.asked.text, pair[0], pair[1]))
    _tell(refused)
    if not found:
        return
    changes = {
        name: Interval(float(np.mean(s.change)), min(s.change), max(s.change)) for name, s in found.items()
    }
    with left:
        panel(
            "swap",
            lambda: dots(changes, "change of the output, share of its length", title, 2),
            "Two words exchanged: change of each word's encoder output; dot: mean, line: smallest "
            f"to largest over {len(some.source_tokens)} tokens. 0 means that the encoder does not notice",
            alt="; ".join(f"{title(name)}: {cell.value:.2f}" for name, cell in changes.items()),
        )
    rows = [{"twin": title(name), "translation now": s.translation.text} for name, s in found.items()]
    right.dataframe(rows, hide_index=True, width="stretch")


def _each(runs: list[TwinTranslation], compute: Callable[[str], V]) -> tuple[dict[str, V], list[str]]:
    """Runs of the twins by name, and the reasons of those that refuse."""
    found, refused = {}, []
    for run in runs:
        try:
            found[run.name] = compute(run.name)
        except ValueError as error:
            refused.append(f"{title(run.name)}: {error}")
    return found, refused


def _tell(refused: list[str]) -> None:
    if refused:
        inform(plain(" ".join(refused)))


def _word(words: list[str], pair: list[int], end: int) -> None:
    def take(position: int) -> None:
        other = pair[1 - end]
        session.change(swap=(position, other) if end == 0 else (other, position))

    offered = options.words(words)
    pickers.choose(
        f"positions.swap.{end}",
        ("First word", "Second word")[end],
        offered,
        pair[end],
        take,
        texts=True,
        labelled=True,
    )


def _swapped(name: str, text: str, one: int, other: int) -> Swapped:
    twin = models.find(f"{catalogue.TWINS}/{name}").translator()
    key = ("swap", name, id(twin), text, one, other)
    return rearranged(key, lambda: swap_words(twin, text, one, other))


def move(opened: Opened, runs: list[TwinTranslation], state: State) -> None:
    """Lets the sentence start later, and shows which twins change their weights."""
    now = state.offset
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("##### Move the sentence: which maps move?")
        pickers.slide(
            "positions.offset",
            "Start this many positions later (nothing stands before the sentence)",
            now,
            "offset",
            ends=(0, max(200, now)),
        )
    moves, refused = _each(runs, lambda name: _moved(name, opened.asked.text, now))
    with left:
        _tell(refused)
        if moves and now:
            st.markdown(_moving(moves))
    if not moves:
        return
    with right:
        panel(
            "shift",
            lambda: dots(
                {n: each.change for n, each in moves.items()}, "change of an attention weight", title, 3
            ),
            f"The sentence at positions {now + 1}, {now + 2}, … instead of 1, 2, …: change of the encoder's "
            "weights; dot: mean of the largest change in each head, line: smallest to largest head. 0 means "
            f"that only distances count · {_verdict(moves)}",
            alt="; ".join(f"{title(name)}: {each.change.value:.3f}" for name, each in moves.items()),
        )
    if now:
        _moved_maps(runs, moves, now, heads_shown(runs, "encoder", state.twin_head))


def _moving(moves: dict[str, Move]) -> str:
    """The answer in a sentence."""
    still = [title(name) for name, each in moves.items() if each.change.high < _STILL]
    moving = [title(name) for name, each in moves.items() if each.change.high >= _STILL]
    parts = [f"The maps move in {', '.join(moving)}."] if moving else []
    parts += [f"The maps stay the same, to three decimals, in {', '.join(still)}."] if still else []
    return " ".join(parts)


def _moved_maps(
    runs: list[TwinTranslation], moves: dict[str, Move], offset: int, heads: dict[str, Head]
) -> None:
    tokens = runs[0].translation.source_tokens
    maps = {name: each.weights(heads[name]) for name, each in moves.items()}
    most = {name: float(np.abs(there - here).max()) for name, (there, here) in maps.items()}
    end = scale_end(max(most.values()))
    of = f", first {CELLS} of {len(tokens)} tokens" if len(tokens) > CELLS else ""
    what = f"weights moved by {offset} − in place, from −{end:.1f} to {end:.1f}{of}"
    what += "; TV: total variation distance of a whole row"
    st.markdown("**One head of the encoder in each twin: moved (A) − in place (B)**")
    for start in range(0, len(maps), COLUMNS):
        names = list(maps)[start : start + COLUMNS]
        for column, name in zip(st.columns(COLUMNS), names, strict=False):
            with column:
                st.markdown(f"**{title(name)}** · {labels.head_name(*heads[name])}")
                panel(
                    f"moved-{name}",
                    _difference(tokens, *maps[name], end),
                    f"{captions.KIND_NAMES['encoder']} · {labels.head_phrase(*heads[name])} · {what} · "
                    f"{title(name)} · {_verdict({name: moves[name]})}",
                    alt=f"Largest difference {most[name]:.3f}.",
                )


def _difference(
    tokens: tuple[str, ...], there: np.ndarray, here: np.ndarray, end: float
) -> Callable[[], go.Figure]:
    shown = slice(*window_around(len(tokens), 0, CELLS))
    names = tokens[shown]
    first, second = there[shown, shown], here[shown, shown]
    distances = np.abs(there - here).sum(1)[shown] / 2
    compared = np.ones(first.shape, dtype=bool)
    titles = ("query", "key")
    return lambda: difference_map(
        first, second, compared, names, names, distances, end, titles, MAP, labels.ROOM
    )


def _verdict(moves: dict[str, Move]) -> str:
    return told([title(name) for name, each in moves.items() if not each.verified])


def _moved(name: str, text: str, offset: int) -> Move:
    twin = models.find(f"{catalogue.TWINS}/{name}").translator()

    def make() -> Move:
        here, there = (encode_moved(twin, text, by) for by in (0, offset))
        layers = range(twin.config.stacks["encoder"].n_layers)
        gaps = [np.abs(there.weights("encoder", i) - here.weights("encoder", i)) for i in layers]
        largest = np.stack([gap.max((-2, -1)) for gap in gaps])
        change = Interval(float(largest.mean()), float(largest.min()), float(largest.max()))
        return Move(here, there, change, here.audit().passed and there.audit().passed)

    return rearranged(("move", name, id(twin), text, offset), make)
