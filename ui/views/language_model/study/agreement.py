"""Agreement: which of two sentences is more probable, and the perplexity on text that no model has read."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from figures.base import labels, style
from figures.base.bars import percent
from figures.pages.language.intervals import Dots, dots
from figures.pages.language.pair import Read, surprisals
from lab.language.agreement import as_written
from transformer.text.typed import clean
from ui.address import State, session
from ui.controls import Table, command, panel, pickers, plain, refusals
from ui.server.language import live
from ui.views.language_model.study.shipped_part import Json, known, measured

EXAMPLES = {
    "next to it": ("The dog runs.", "The dog run."),
    "a noun between": ("The keys to the cabinet are here.", "The keys to the cabinet is here."),
    "a clause between": ("The boy that the girls like is tall.", "The boy that the girls like are tall."),
    "a reflexive": ("The woman saw herself.", "The woman saw himself."),
}
"""Pairs to start from by their topics; the first one opens."""
FIRSTS = {topic: pair[0] for topic, pair in EXAMPLES.items()}
_CHANCE = 0.5
_SEEING = (
    "Two sentences differ in one word; one is grammatical (CLAMS, Mueller et al. 2020). A model is right if "
    "it finds that one more probable; guessing is right half the time (dotted line). An n-gram model sees "
    "only the last four pieces, so it misses a subject further back. Whiskers: 95 % intervals over subjects, "
    "since pairs with one subject are much alike."
)
_SCORING = (
    "The model reads both sentences as they stand, with their ends. The surprisal of a token is minus the "
    "base-2 logarithm of its probability after the tokens before it; summed over the sentence, it says how "
    "probable the whole is. Before the word in which the sentences differ, both cost the same."
)


def show(model: str, now: State) -> None:
    found = known(model, "agreement")
    if found is not None:
        st.markdown(told(found))
        caption = f"Accuracy on minimal pairs by case · {measured(model, found)}"
        panel(
            "agreement", lambda: _figure(found), caption, lambda: table(found), seeing=_SEEING, sentence=False
        )
    st.markdown("##### A pair of your own")
    _pair(model, now)
    st.markdown("##### Text that neither model has read")
    _perplexity(model)


def told(found: Json) -> str:
    """The case in which the model is best, the cases in which it only guesses, and the n-gram model."""
    models, names = found["models"], found["told"]
    cells = {case: each["accuracy"] for case, each in models[MODEL].items()}
    best = max(cells, key=lambda case: cells[case]["value"])
    guessed = [names[case] for case, each in cells.items() if each["low"] <= _CHANCE <= each["high"]]
    better = [case for case, each in cells.items() if each["low"] > models[NGRAM][case]["accuracy"]["high"]]
    guesses = (
        f"It does no better than guessing in {_counted(len(guessed), len(cells))}: {'; '.join(guessed)}."
        if guessed
        else "In every case it does better or worse than guessing."
    )
    return (
        f"The model does best in the case “{names[best]}”: it prefers the grammatical sentence in "
        f"**{percent(cells[best]['value'])}** of the pairs, the n-gram model in "
        f"{percent(models[NGRAM][best]['accuracy']['value'])}. {guesses} It is clearly ahead of the n-gram "
        f"model, with intervals apart, in {_counted(len(better), len(cells))}."
    )


def _counted(count: int, whole: int) -> str:
    return f"{count} of {whole} cases"


def _figure(found: Json) -> go.Figure:
    cases = list(found["models"][MODEL])
    rows = [f"{found['told'][case]} · {found['models'][MODEL][case]['pairs']:,} pairs" for case in cases]
    lines = [_dots(found, name, cases) for name in LOOKS]
    return dots(rows, lines, "accuracy", _CHANCE, percent=True)


def _ranged(accuracy: Json) -> str:
    value, low, high = labels.hundredths(accuracy["value"], accuracy["low"], accuracy["high"])
    return f"{value}{labels.PER_CENT} ({low} to {high}{labels.PER_CENT})"


def _dots(found: Json, name: str, cases: list[str]) -> Dots:
    cells = [found["models"][name][case]["accuracy"] for case in cases]
    notes = [
        f"{found['told'][case]}\n{name}: {_ranged(each)}\n{as_written(found['examples'][case][0])}\n"
        f"{as_written(found['examples'][case][1])}"
        for case, each in zip(cases, cells, strict=True)
    ]
    return Dots(name, cells, notes, *LOOKS[name])


def table(found: Json) -> Table:
    """Accuracies with their intervals, for CSV."""
    rows = [
        (case, found["told"][case], name, each["pairs"], each["subjects"], *each["accuracy"].values())
        for name in LOOKS
        for case, each in found["models"][name].items()
    ]
    return [("case", "where", "model", "pairs", "subjects", "accuracy", "low", "high"), *rows]


def _pair(model: str, now: State) -> None:
    usual = next(iter(EXAMPLES.values()))
    first = usual[0] if now.prompt is None else now.prompt
    second = usual[1] if now.other is None else now.other
    left, right = st.columns(2, gap="small")
    with left:
        _box("First sentence", "prompt", first, second)
    with right:
        _box("Second sentence", "other", second, first)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="examples"):
        pickers.examples(EXAMPLES, lambda pair: _take(prompt=pair[0], other=pair[1]), " / ".join, "pair")
    with refusals():
        _scored(model, live.read(model, clean(first)), live.read(model, clean(second)))


def _box(label: str, name: str, value: str, beside: str) -> None:
    other = "other" if name == "prompt" else "prompt"
    st.text_input(
        label,
        value,
        **pickers.control(f"pair {name}", value, lambda text: _take(**{name: text, other: beside})),
    )


def _take(**texts: str) -> None:
    session.change(**texts)


def _scored(model: str, first: live.Read, second: live.Read) -> None:
    st.markdown(verdict(first, second))

    def make() -> go.Figure:
        return surprisals(Read(first.tokens, first.bits), Read(second.tokens, second.bits))

    caption = f"Surprisal of each token of both sentences · {model.rpartition('/')[2]} · computed now"
    panel("pair", make, caption, lambda: pair_table(first, second), seeing=_SCORING, sentence=False)


def verdict(first: live.Read, second: live.Read) -> str:
    """Which sentence the model finds more probable, and by how much."""
    gap = second.total - first.total
    bits = f"{first.total:.1f} against {second.total:.1f} bits"
    if abs(gap) < 0.05:
        return f"The model finds both sentences equally probable: {bits}."
    better = "first" if gap > 0 else "second"
    times = 2.0 ** min(abs(gap), 60)
    return f"The model finds the **{better}** sentence **{times:,.3g} times** as probable: {bits}."


def pair_table(first: live.Read, second: live.Read) -> Table:
    """Tokens and bits of both sentences, for CSV."""
    rows = [
        (number, token, bits)
        for number, each in (("first", first), ("second", second))
        for token, bits in zip(each.tokens, each.bits, strict=True)
    ]
    return [("sentence", "token", "bits"), *rows]


MODEL, NGRAM, LONGER = "language model", "n-gram", "longer n-gram"
LOOKS = {MODEL: (style.POSITIVE, "circle"), NGRAM: (style.NEGATIVE, "square")}
UNITS = {"per_word": "per word", "per_piece": "per piece"}
_SENTENCES = {"heldout": "held-out sentences", "test": "test sentences"}
"""The usual files by their names."""
_SEEING_PERPLEXITY = (
    "Perplexity is e to the mean surprisal in nats: the number of equally probable words among which the "
    "model seems to choose. White space separates words, and the end of each sentence counts as one more, so "
    "models with other pieces can be compared. Lower is better. Whiskers are 95 % intervals over sentences; "
    "the difference is paired, so it is more certain than the whiskers suggest."
)


def _perplexity(model: str) -> None:
    """Draws the figure, with the command that counts its numbers."""
    found = known(model, "perplexity")
    if found is None:
        return
    st.markdown(perplexity_sentence(found))
    caption = (
        f"Perplexity per word · modified Kneser–Ney model of order {found['order']}, same pieces, counted on "
        f"{found['counted']['sentences']:,} sentences of the training text · {measured(model, found)}"
    )
    panel(
        "perplexity",
        lambda: _perplexity_figure(found),
        caption,
        lambda: perplexity_table(found),
        seeing=_SEEING_PERPLEXITY,
        sentence=False,
    )
    with st.popover("Which command counts this?", type="tertiary", icon=":material/terminal:"):
        st.code(command(found["command"]), language="sh", wrap_lines=True)


def perplexity_sentence(found: Json) -> str:
    """The perplexity of both models on each text, and their difference."""
    orders = found["order"], found["longer_order"]
    return " ".join(_told(path, each, orders) for path, each in found["files"].items())


def _told(path: str, file: Json, orders: tuple[int, int]) -> str:
    own, other, longer = (file["per_word"][name]["value"]["value"] for name in (*LOOKS, LONGER))
    gap = file["per_word"][MODEL]["difference"]
    chance = ", which may be chance" if gap["low"] <= 0 <= gap["high"] else ""
    return (
        f"On {file['texts']:,} {plain(name_of(path))}, the perplexity per word is "
        f"**{own:.1f}**, and {other:.1f} for the n-gram model of order {orders[0]}: a difference of "
        f"{signed(gap['value'])} ({signed(gap['low'])} to {signed(gap['high'])}){chance}. With order "
        f"{orders[1]}, the n-gram model reaches {longer:.1f}."
    )


def signed(value: float) -> str:
    """A difference with its sign."""
    return f"{value:+.1f}".replace("-", "−")


def name_of(path: str) -> str:
    """The sentences of a file as visitors read of them."""
    name = path.rpartition("/")[2].partition(".")[0]
    return _SENTENCES.get(name, f"sentences of “{name}”")


def _perplexity_figure(found: Json) -> go.Figure:
    files = found["files"]
    rows = [f"{name_of(path)} · {each['words']:,} words" for path, each in files.items()]
    lines = [_perplexity_dots(name, list(files.values())) for name in LOOKS]
    return dots(rows, lines, "perplexity per word", None, percent=False)


def _perplexity_dots(name: str, files: list[Json]) -> Dots:
    cells = [each["per_word"][name]["value"] for each in files]
    notes = [f"{name}: {each['value']:.1f} ({each['low']:.1f} to {each['high']:.1f})" for each in cells]
    return Dots(name, cells, notes, *LOOKS[name])


def perplexity_table(found: Json) -> Table:
    """Both perplexities of both models with their intervals, for CSV."""
    rows = [
        (name_of(path), name, unit, *each[key][name]["value"].values())
        for path, each in found["files"].items()
        for key, unit in UNITS.items()
        for name in (*LOOKS, LONGER)
    ]
    return [("text", "model", "unit", "perplexity", "low", "high"), *rows]
