"""Pretraining: translators whose encoder began as a language model, against others from scratch."""

from __future__ import annotations

import streamlit as st

from figures.base import labels, style
from figures.pages.training.curves import Curve
from figures.pages.training.panels import Panel, panels
from lab.pretraining.pretraining import PRETRAINED, SCRATCH
from ui.address import State
from ui.controls import Table, inform, panel
from ui.server import measured
from ui.views.language_model.study.shipped_part import Json

BEGUN = {SCRATCH: "from scratch", PRETRAINED: "begun as a language model"}
_COLORS = {SCRATCH: style.NEGATIVE, PRETRAINED: style.POSITIVE}
_DASHES = ("solid", "dot", "dash")
_SEEING = (
    "Each panel trains the same small translator on a part of the sentence pairs. One encoder begins with "
    "random weights. The other begins with those of a language model that has read English text only, as Dai "
    "and Le (2015) proposed, long before BERT. The lines are the loss on the validation pairs; lines of one "
    "colour are different seeds. The comparison has one catch: the language model saw only what came before "
    "a word; the encoder sees both sides, so it must also learn to use what follows."
)


def show(_model: str, _now: State) -> None:
    """Draws the section, which is about translators and not about the chosen model."""
    found = measured.shipped(measured.PRETRAINING)
    if found is None:
        inform("No such measurement came with this installation. `python -m lab pretraining` makes it.")
        return
    st.markdown(told(found))
    st.markdown(rows(found))
    caption = (
        "Loss on the validation pairs in nats per token, against the step · "
        f"{drawn_runs(found)} · measured on {found['date']}"
    )
    panel(
        "pretraining",
        lambda: panels(parts(found), "step"),
        caption,
        lambda: table(found),
        seeing=_SEEING,
        sentence=False,
    )


def told(found: Json) -> str:
    """Gain from pretraining with few pairs and with more."""
    gains = [
        f"**{_mean(found, percent, 'bleu', '+.1f')} BLEU** with {percent} % of the pairs "
        f"(loss {_mean(found, percent, 'loss', '+.2f')} nats)"
        for percent in percents(found)
    ]
    listed = " and ".join(filter(None, [", ".join(gains[:-1]), gains[-1]]))
    return (
        f"Against an encoder from scratch, one that began as a language model gives {listed}. "
        f"{_verdict(found)} "
        "Pretraining is meant for what is learned from plain text, of which there is more than of "
        "translations; here the language model read 5.6 million words in 1,500 steps."
    )


def _mean(found: Json, percent: int, what: str, form: str) -> str:
    """The mean difference over the seeds of one share."""
    values = [each["models"][PRETRAINED][what]["difference"]["value"] for each in of(found, percent)]
    return labels.number(sum(values) / len(values), form)


def rows(found: Json) -> str:
    """BLEU and loss of every two runs, as a table."""
    head = "| pairs | seed | BLEU from scratch | begun as a language model | difference | loss, difference |"
    lines = [head, "| --- | --- | --- | --- | --- | --- |"]
    for each in found["compared"]:
        models = each["models"]
        scores = [f"{models[how]['bleu']['value']['value']:.1f}" for how in BEGUN]
        gaps = _gap(models, "bleu", "+.1f"), _gap(models, "loss", "+.2f")
        lines.append(f"| {each['percent']} % | {each['seed']} | {' | '.join((*scores, *gaps))} |")
    return "\n".join(lines)


def _gap(models: Json, what: str, form: str) -> str:
    """Effect of beginning as a language model, with its interval."""
    gap = models[PRETRAINED][what]["difference"]
    value, low, high = (labels.number(gap[end], form) for end in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def drawn_runs(found: Json) -> str:
    """Number of runs, and the data of their BLEU."""
    return f"{2 * len(found['compared'])} runs; BLEU of {found['sentences']:,} test sentences, greedy"


def percents(found: Json) -> list[int]:
    """The shares of the pairs that were tried, in per cent."""
    return sorted({each["percent"] for each in found["compared"]})


def of(found: Json, percent: int) -> list[Json]:
    """The comparisons of one share, one for each seed."""
    return [each for each in found["compared"] if each["percent"] == percent]


def parts(found: Json) -> list[Panel]:
    """A panel for each share of the pairs."""
    return [
        Panel(f"{percent} % of the pairs", curves(of(found, percent)), 150, from_zero=False)
        for percent in percents(found)
    ]


def curves(compared: list[Json]) -> list[Curve]:
    """The validation losses of the runs of one share."""
    return [
        _curve(name, each["curves"][how], _COLORS[how], dash)
        for each, dash in zip(compared, _DASHES, strict=False)
        for how, name in BEGUN.items()
    ]


def _curve(name: str, points: list[tuple[int, float]], color: str, dash: str) -> Curve:
    return Curve(name, [step for step, _ in points], [loss for _, loss in points], color, dash)


def table(found: Json) -> Table:
    """Every point that is drawn, for CSV."""
    points = [
        (each["percent"], each["seed"], name, *point)
        for each in found["compared"]
        for how, name in BEGUN.items()
        for point in each["curves"][how]
    ]
    return [("% of the pairs", "seed", "encoder", "step", "validation loss"), *points]


def _verdict(found: Json) -> str:
    """Conclusion from all comparisons together, by the intervals of BLEU."""
    gaps = [each["models"][PRETRAINED]["bleu"]["difference"] for each in found["compared"]]
    gained, lost = sum(gap["low"] > 0 for gap in gaps), sum(gap["high"] < 0 for gap in gaps)
    many = f"of {len(gaps)} pairs of runs, {gained} gained and {lost} lost beyond their interval"
    return f"So it gained nothing here: {many}." if not gained else f"It gained in some: {many}."
