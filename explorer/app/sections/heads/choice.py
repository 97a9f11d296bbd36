"""A survey of heads, and what a visitor chose to see of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from explorer.app.address import State
from explorer.app.address.parameters import link
from explorer.app.controls import plain
from explorer.app.server import examples
from explorer.figures.base import labels
from explorer.figures.base.bars import percent
from explorer.lenses.heads.measures import PROFILED, STATISTICS, Statistic
from explorer.lenses.heads.roles import ALIGNMENT, aligned_by
from explorer.lenses.heads.survey import Line, Survey
from transformer.config import AttentionKind, Head

PAGES = {
    "encoder": "pages/encoder_self_attention.py",
    "decoder": "pages/decoder_self_attention.py",
    "cross": "pages/cross_attention.py",
}
_FIRST = {"encoder": "previous", "decoder": "same_word", "cross": "aer"}
_ERROR = "AER of the implied word alignment on the links made by hand"
_KNOWN = (
    *STATISTICS,
    *PROFILED,
    Statistic("aer", "alignment error", f"{_ERROR}, by the better of the two rows.", falling=True),
    Statistic(
        "aer_read", "alignment error, row read", f"{_ERROR}, with the rows that read a word.", falling=True
    ),
    Statistic("keeps", "keeps its role", "Share of the sentences that show the head's role."),
)


@dataclass(frozen=True)
class Found:
    """Results of a survey, and the visitor's choices among them."""

    survey: Survey  # statistics of every head over the sentences
    now: State  # what the visitor asked for
    kind: AttentionKind  # encoder, decoder or cross
    head: Head  # the chosen head, from 0
    known: tuple[Statistic, ...]  # the statistics that heads of the kind have
    statistic: Statistic  # the one that the visitor chose, or the usual one if the kind lacks it
    file: str | None  # the name of the visitor's own file of sentences; None for the sample

    @classmethod
    def of(cls, survey: Survey, kind: str, now: State, file: str | None) -> Found:
        """Choices of a state among a survey; the model must have the head that the state names."""
        names = {*survey.means[AttentionKind(kind)], "keeps"}
        known = tuple(each for each in _KNOWN if each.name in names)
        usual = next((each for each in known if each.name == _FIRST[kind]), known[0])
        statistic = next((each for each in known if each.name == now.statistic), usual)
        return cls(survey, now, AttentionKind(kind), getattr(now, kind), known, statistic, file)

    @property
    def entropy(self) -> Statistic:
        """The statistic that every head has."""
        return next(each for each in self.known if each.name == "entropy")

    @property
    def roles(self) -> np.ndarray:
        """The role of every head, (layers, heads)."""
        return self.survey.roles(self.kind)

    def role(self, head: Head) -> str:
        """The role of a head in words; of an alignment, with the row that implies it."""
        name = str(self.roles[head])
        if name != ALIGNMENT:
            return name
        return f"{name} (row that {aligned_by(self.survey.means[self.kind])[head]})"

    @property
    def heads(self) -> list[Head]:
        """All heads of the kind, from 0."""
        layers, heads = self.roles.shape
        return [(layer, head) for layer in range(layers) for head in range(heads)]

    def value(self, head: Head, statistic: Statistic) -> float:
        """A statistic of a head."""
        if statistic.name == "keeps":
            return self.survey.stability(self.kind, *head)
        means = self.survey.means[self.kind]
        names = ("aer", "aer_read") if statistic.name == "aer" else (statistic.name,)
        return float(min(means[name][head] for name in names if name in means))


def written(value: float, statistic: Statistic) -> str:
    """A statistic as text: shares in per cent, others with two decimals."""
    shares = statistic.unit == "share" and statistic.name != "entropy"
    return percent(value) if shares else labels.number(value, ".2f")


def link_to(found: Found, line: Line, label: str, row: int | None, source: int | None = None) -> None:
    """Links to a sentence in the view of the kind, which runs it as it was run here, at a row of the head."""
    kind = str(found.kind)
    at = {"step": row, "source": source} if kind != "encoder" else {"step": None, "source": row}
    values = {
        "text": line.source,
        "sentence": examples.whole(line.source),
        "target": line.target,
        kind: found.head,
        "decode": "greedy",
    }
    st.page_link(
        PAGES[kind],
        label=plain(label),
        help=plain(line.target or "translated greedily"),
        icon=":material/open_in_new:",
        query_params=link(found.now, **at, **values),
    )
