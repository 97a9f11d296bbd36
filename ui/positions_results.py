"""What positional encodings buy: the shipped experiments on the twins, small plots with one sentence each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from figures import labels
from figures.bars import percent
from figures.positions import Interval, dots, measured_lines, seen_norms, twin_lines
from ui import frame, models, state, widgets
from ui.positions_encodings import CROSS, draw, fitted_head, stack, stack_switch

Json = dict[str, Any]
_SECONDS = "hollow: the same encoding with another seed"


@st.fragment
def show() -> None:
    """Draws the part, or says that nothing was measured yet."""
    results = models.position_results()
    if results is None:
        st.info(
            "The experiments were not run on these models yet: `python -m transformer positions --models "
            "assets/models/positions --data FILE --train FILE` writes what is shown here.",
            icon=":material/info:",
        )
        frame.menu()
        return
    st.caption(
        f"{len(results['models'])} models, {results['sentences']:,} test sentences, {results['date']}. "
        "Intervals hold "
        "95 % of 1,000 bootstrap resamples of the sentences, the same for all models; they do not cover "
        "the luck of "
        f"a training run: {_seeds(results)} Nothing beyond them is claimed. {CROSS}"
    )
    for row in ((_scores, _shuffled), (_lengths, _long), (_previous, _distance), (_tables, _costs)):
        for column, part in zip(st.columns(2, gap="large"), row, strict=True):
            with column:
                part(results)
    with st.popover("How it was measured", type="tertiary", icon=":material/help:"):
        st.code(results["command"], language="sh", wrap_lines=True)
    frame.menu()
    frame.show_notices()


def _seeds(results: Json) -> str:
    pairs = [
        (name.partition("-seed")[0], value(results["scores"][name]["bleu"]))
        for name, facts in results["models"].items()
        if facts["other_seed"]
    ]
    gaps = [
        f"{name} {abs(cell.value - value(results['scores'][name]['bleu']).value):.1f}"
        for name, cell in pairs
        if name in results["scores"]
    ]
    if not gaps:
        return "only one run of each was trained."
    return f"a second seed moves BLEU by {', '.join(gaps)}."


def value(measured: Json) -> Interval:
    """The value of a measurement."""
    return Interval(**measured["value"])


def doubtful(measured: Json) -> bool:
    """Whether the interval of a difference holds 0."""
    gap = measured["difference"]
    return bool(gap["low"] <= 0 <= gap["high"])


def _values(part: Json, measure: str) -> dict[str, Interval]:
    return {name: value(found[measure]) for name, found in part.items()}


def against_baseline(part: Json, measure: str, baseline: str, digits: int) -> str:
    """Which models are surely better or worse than the baseline, in one sentence."""
    found = {name: each[measure] for name, each in part.items() if "difference" in each[measure]}
    sure = {name: each["difference"]["value"] for name, each in found.items() if not doubtful(each)}
    if not found:
        return ""
    if not sure:
        return f"No difference from {baseline} is beyond chance."
    told = ", ".join(
        f"{name} {gap:+.{digits}f}" for name, gap in sorted(sure.items(), key=lambda item: -item[1])
    )
    rest = [name for name in found if name not in sure]
    others = f"; within chance: {', '.join(rest)}" if rest else ""
    return f"Beyond chance against {baseline}: {told}{others}.".replace(" -", " −")


def _plain(part: Json) -> Json:
    """Without the runs of other seeds."""
    return {name: each for name, each in part.items() if "-seed" not in name}


def _scores(results: Json) -> None:
    st.markdown("##### Translation")
    st.markdown(against_baseline(_plain(results["scores"]), "bleu", results["baseline"], 1))
    draw(
        "scores",
        lambda: dots(_values(results["scores"], "bleu"), "BLEU on the Tatoeba test"),
        f"BLEU of greedy translations, with intervals; {_SECONDS}",
        _told(_values(results["scores"], "bleu"), 1),
    )


def _told(values: dict[str, Interval], digits: int) -> str:
    return "; ".join(f"{name}: {cell.value:.{digits}f}" for name, cell in values.items())


def _shuffled(results: Json) -> None:
    found = results["shuffled"]
    st.markdown("##### Word order of the source shuffled")
    bleu = _values(found["models"], "bleu")
    blind = [name for name, cell in bleu.items() if cell.value > 99.9 and "-seed" not in name]
    if blind:
        st.markdown(
            f"{' and '.join(blind)}: every translation stays the same to the word, because its encoder "
            "sees a set. "
            "The others notice."
        )
    else:
        st.markdown("The closer to 100, the less the model uses the order of the source.")
    draw(
        "shuffled",
        lambda: dots(bleu, "BLEU against its ordered translation"),
        f"{found['sentences']:,} sentences with their words in random order, held against the same twin's "
        f"translation of the ordered source; {_SECONDS}",
        _told(bleu, 1),
    )


def _series(levels: list[Json], measure: str) -> dict[str, list[Interval | None]]:
    names = [name for name in levels[0]["models"] if "-seed" not in name]
    return {name: [value(level["models"][name][measure]) for level in levels] for name in names}


def _lengths(results: Json) -> None:
    groups = results["lengths"]["groups"]
    st.markdown("##### By length of the sentence")
    longest = groups[-1]
    st.markdown(
        f"All lose with length. In the last group ({longest['first']} tokens and more) there are "
        f"{longest['sentences']} sentences only, as its wide intervals say."
    )
    draw(
        "lengths",
        lambda: measured_lines(
            [group["first"] for group in groups],
            _series(groups, "loss"),
            ("tokens of the source, from", "nats per token"),
        ),
        "Loss of the reference (lower is better), sentences grouped by length, with intervals",
        "; ".join(f"from {group['first']} tokens: {group['sentences']} sentences" for group in groups),
    )


def _long(results: Json) -> None:
    found = results["long"]
    levels = found["levels"]
    st.markdown("##### Longer than in training")
    if not levels:
        st.markdown("The test data do not fill a text of the trained length.")
        return
    last = levels[-1]
    st.markdown(
        f"{found['trained_length']} tokens are the length that 99 % of the training sources do not exceed. "
        "At "
        f"{last['factor']} times that: "
        + against_baseline(_plain(last["models"]), "loss", results["baseline"], 2).replace("Beyond", "beyond")
        + " (Nats per token; less is better.)"
    )
    draw(
        "long",
        lambda: measured_lines(
            [round(level["tokens"]) for level in levels],
            _series(levels, "loss"),
            ("tokens of the source, on average", "nats per token"),
        ),
        "Loss of the reference: test sentences joined up to "
        f"{', '.join(str(level['factor']) for level in levels)} "
        f"times {found['trained_length']} tokens. Joined sentences are new to all twins, at any length",
        "; ".join(f"{level['tokens']:.0f} tokens: {level['texts']} texts" for level in levels),
    )


def _previous(results: Json) -> None:
    kind = stack()
    st.markdown("##### Which token comes before?")
    found = {name: each[kind]["previous"] for name, each in results["attention"]["models"].items()}
    cells = {
        name: Interval(*(100 * each["accuracy"][end] for end in ("value", "low", "high")))
        for name, each in found.items()
        if each["accuracy"] is not None
    }
    if not cells:
        st.markdown("There were too few sentences to measure it.")
        return
    best = max(cells, key=lambda name: cells[name].value)
    head = labels.head_phrase(found[best]["layer"], found[best]["head"])
    st.markdown(
        f"Clearest in {best}: {head} has its largest weight on the token before in "
        f"{percent(cells[best].value / 100)} of its rows."
    )
    stack_switch("results")
    draw(
        "previous",
        lambda: dots(cells, "rows that point at the token before, %", 0, " %"),
        f"The {kind}'s best head of each twin, chosen on every other of "
        f"{results['attention']['sentences']} sentences "
        "and measured on the rest",
        _told(cells, 0),
    )


def _distance(results: Json) -> None:
    kind = stack()
    found = results["attention"]
    shapes = next(iter(found["models"].values()))[kind]["mass"]
    options = [None, *((i, j) for i in range(len(shapes)) for j in range(len(shapes[0])))]
    asked = state.current().twin_head
    now = None if asked is None else fitted_head(asked, (len(shapes), len(shapes[0])))
    st.markdown("##### Attention by distance")
    st.selectbox(
        "Head",
        options,
        index=options.index(now),
        format_func=lambda each: (
            "each twin's previous-token head"
            if each is None
            else f"{labels.head_phrase(*each)} of every twin"
        ),
        label_visibility="collapsed",
        **widgets.control("positions.results.head", now, lambda each: state.change(twin_head=each)),
    )
    reach = found["reach"]
    stop = 2 * reach + 1 if kind == "encoder" else reach + 1
    series: dict[str, Any] = {}
    for name, each in found["models"].items():
        layer, head = now or (each[kind]["previous"]["layer"], each[kind]["previous"]["head"])
        series[name] = each[kind]["mass"][layer][head][:stop]
    uniform = next(iter(found["models"].values()))[kind]["uniform"][:stop]
    draw(
        "profile",
        lambda: twin_lines(
            list(range(-reach, reach + 1))[:stop],
            {**series, "evenly spread": uniform},
            ("distance, key − query", "weight"),
            height=330,
        ),
        f"Mean weight of a row of the {kind} at each distance (the ends hold all that is further), "
        f"{found['sentences']} sentences with their references",
        "; ".join(f"{name}: {values[reach - 1]:.2f} on the token before" for name, values in series.items()),
    )


def _tables(results: Json) -> None:
    found = results["table"]
    st.markdown("##### Learned positions that training rarely saw")
    if not found["models"]:
        st.markdown("No twin with a learned table was measured.")
        return
    name, norms = next(iter(found["models"].items()))
    seen = found["seen"]["encoder"]
    rare = next((i for i, count in enumerate(seen) if count < seen[0] / 1000), len(seen))
    st.markdown(
        f"Only one source in a thousand reaches position {labels.count(rare)}, and none position "
        f"{labels.count(len(seen))}: from there on the table is what it was before training."
    )
    draw(
        "table",
        lambda: seen_norms(norms, found["seen"]),
        f"Norm of each row of {name}'s tables, and training sentences that reach the position (logarithmic)",
        f"Encoder norms: {norms['encoder'][0]:.2f} at position 1, {norms['encoder'][-1]:.2f} at the last.",
    )


def _costs(results: Json) -> None:
    found = results["cost"]
    st.markdown("##### Speed and memory")
    sizes = found["lengths"]
    place = max(
        i for i in range(len(sizes)) if any(each["megabytes"][i] for each in found["models"].values())
    )
    most = max(
        (name for name in found["models"] if found["models"][name]["megabytes"][place]),
        key=lambda name: found["models"][name]["megabytes"][place],
    )
    peak = found["models"][most]["megabytes"][place]
    st.markdown(
        f"A bias costs a matrix of queries × keys while it is added: at {sizes[place]:,} tokens {most} holds "
        f"{peak:.0f} MB at its peak. Encodings without a bias grow with the length only."
    )
    for name, title, caption in _COSTS:
        series = {
            twin: _measured(each[name]) for twin, each in found["models"].items() if "-seed" not in twin
        }
        draw(
            f"cost-{name}",
            _cost_figure(sizes, series, title),
            f"{caption}, one thread, weights not counted",
            title,
        )


_COSTS = (
    ("milliseconds", "milliseconds", "Encoder pass over one text, median of 7"),
    ("megabytes", "MB", "Most memory that the encoder's tensors hold at once"),
)


def _measured(values: list[float | None]) -> list[Interval | None]:
    return [None if each is None else Interval(each, each, each) for each in values]


def _cost_figure(sizes: list[int], series: dict[str, list[Interval | None]], title: str) -> Callable[[], Any]:
    return lambda: measured_lines(sizes, series, ("tokens", title), height=230, log=True)
