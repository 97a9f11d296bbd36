"""Two positional encodings side by side: what each does to a position, in the same form."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from figures.pages.positions import table_map
from transformer.model.encodings.positions import rotary_angles, sinusoidal_table
from transformer.model.encodings.table import ENCODINGS
from ui.controls import panel

_POSITIONS, _WIDTH = 64, 64
_SINUSOIDAL = "A vector of sines and cosines is **added** to the token, once, before the first layer."
_ROTARY = (
    "Queries and keys are **turned** by angles that grow with the position, in every layer; what is shown is "
    "what becomes of a vector whose pairs are all (1, 0)."
)
_BOTH = (
    "Both count positions with waves of the same lengths, and the products of their rows depend on the "
    "distance alone. One adds the waves to what a token means, so that a head has to tell the two apart; the "
    "other turns what is compared, so that a score holds nothing of a position but the distance."
)


def show() -> None:
    st.markdown(_BOTH)
    tables = {
        "sinusoidal": (_SINUSOIDAL, sinusoidal_table(_POSITIONS, _WIDTH).numpy()),
        "rotary": (_ROTARY, _turned(rotary_angles(_POSITIONS, _WIDTH).numpy())),
    }
    for column, (name, (told, table)) in zip(st.columns(2, gap="medium"), tables.items(), strict=True):
        with column, st.container(key=f"beside-{name}"):
            _one(name, told, table)


def _turned(angles: np.ndarray) -> np.ndarray:
    """(positions, pairs) angles → (positions, 2 · pairs): each pair (1, 0), turned by its angle."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(len(angles), -1)


def _one(name: str, told: str, table: np.ndarray) -> None:
    st.markdown(f"##### {name.capitalize()}")
    st.markdown(told)
    where = f"{name}, {_POSITIONS} positions × {table.shape[1]} dimensions, by formula"
    panel(
        f"together {name}",
        partial(table_map, table, 1, "position", "dimension"),
        where,
        formula=ENCODINGS[name].formula,
        seeing=ENCODINGS[name].what,
        sentence=False,
    )
    panel(
        f"together {name} products",
        partial(table_map, table @ table.T, 1, "position", "position", left=1),
        f"products of all pairs of rows · {where}",
        sentence=False,
    )
