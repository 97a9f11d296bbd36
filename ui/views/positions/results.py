"""Benefit of positional encodings: the bundled experiments on the twins, in sentences and plots."""

from __future__ import annotations

import itertools
from typing import Any

import streamlit as st

from figures.base import labels
from figures.base.bars import percent
from figures.pages.positions import Interval, dots, measured_groups, seen_norms, twin_lines, twin_name
from transformer.model.sites import Head, Side
from ui.address import session
from ui.controls import how, inform, panel, part, pickers
from ui.server import measured
from ui.shell import frame
from ui.views.positions import costs
from ui.views.positions.encodings import fitted_head, stack_of, stack_switch

Json = dict[str, Any]
_PAIRED = "with the 95 % interval of the paired bootstrap"


@part
def show() -> None:
    """Draws the part, or says that nothing has been measured yet."""
    now = session.current()
    results = measured.shipped(measured.POSITIONS)
    if results is None:
        inform(
            "The experiments were not run on these models yet. `python -m lab positions` runs them "
            "and writes what is shown here."
        )
        return
    notices = st.empty()
    st.caption(
        f"{len(results['models'])} models, {results['sentences']:,} test sentences, {results['date']}. "
        "Each interval holds 95 % of 1,000 bootstrap resamples of the sentences; all models share the "
        f"resamples. The intervals do not cover the luck of a training run: {_seeds(results)} This page "
        "claims nothing beyond the intervals. No twin applies its encoding inside cross-attention."
    )
    left, right = st.columns(2, gap="large")
    with left:
        _scores(results)
        _shuffled(results)
        _previous(results, stack_of(now))
        costs.show(results)
    with right:
        _lengths(results)
        _long(results)
        _distance(results, stack_of(now), now.twin_head)
        _tables(results)
        _probe(results)
    how(results)
    with notices:
        frame.show_notices(now)


def _seeds(results: Json) -> str:
    pairs = [
        (name.partition("-seed")[0], value(results["scores"][name]["bleu"]))
        for name, facts in results["models"].items()
        if facts["other_seed"]
    ]
    gaps = [
        f"{abs(cell.value - value(results['scores'][name]['bleu']).value):.1f} ({twin_name(name)})"
        for name, cell in pairs
        if name in results["scores"]
    ]
    if not gaps:
        return "only one run of each was trained."
    return f"a second seed moves BLEU by {', '.join(gaps)}."


def _hollow(results: Json) -> str:
    stored = {facts["stored"] for facts in results["models"].values() if facts["other_seed"]}
    return f"; hollow: the same encoding with another seed, stored in {', '.join(stored)}" if stored else ""


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
    """Distance of each model from the baseline, with intervals; a sentence of its own names doubtful ones."""
    found = {name: each[measure] for name, each in part.items() if "difference" in each[measure]}
    order = sorted(found, key=lambda name: -found[name]["difference"]["value"])
    told = {name: f"{twin_name(name)} {_gap(found[name]['difference'], digits)}" for name in order}
    sure = [told[name] for name in order if not doubtful(found[name])]
    rest = [told[name] for name in order if doubtful(found[name])]
    sentences = [
        f"Against {twin_name(baseline)}, {_PAIRED}: {', '.join(sure)}." if sure else "",
        f"For {', '.join(rest)}, the interval includes 0, so nothing is claimed." if rest else "",
    ]
    return " ".join(filter(None, sentences))


def _gap(gap: Json, digits: int) -> str:
    low, high = (f"{gap[end]:+.{digits}f}" for end in ("low", "high"))
    return f"{gap['value']:+.{digits}f} ({low} to {high})".replace("-", "−")


def _plain(part: Json) -> Json:
    """The models without the runs of other seeds."""
    return {name: each for name, each in part.items() if "-seed" not in name}


def _scores(results: Json) -> None:
    st.markdown("##### Translation")
    st.markdown(against_baseline(_plain(results["scores"]), "bleu", results["baseline"], 1))
    panel(
        "scores",
        lambda: dots(_values(results["scores"], "bleu"), "BLEU on the Tatoeba test"),
        f"BLEU of greedy translations, each with its own interval{_hollow(results)}",
        alt=_told(_values(results["scores"], "bleu"), 1),
        sentence=False,
    )


def _told(values: dict[str, Interval], digits: int) -> str:
    return "; ".join(f"{twin_name(name)}: {cell.value:.{digits}f}" for name, cell in values.items())


def _shuffled(results: Json) -> None:
    found = results["shuffled"]
    st.markdown("##### Word order of the source shuffled")
    bleu = _values(found["models"], "bleu")
    blind = [name for name, cell in bleu.items() if cell.low == 100 and "-seed" not in name]
    if blind:
        st.markdown(
            f"Every translation by “{'” and “'.join(map(twin_name, blind))}” stays exactly the same, because "
            "the encoder sees only a bag of words. The other twins notice the new order."
        )
    else:
        st.markdown("The closer a value is to 100, the less the model uses the order of the source.")
    panel(
        "shuffled",
        lambda: dots(bleu, "BLEU against its ordered translation"),
        f"{found['sentences']:,} sentences with their words in random order, compared with the same twin's "
        f"translation of the ordered source{_hollow(results)}",
        alt=_told(bleu, 1),
        sentence=False,
    )
    shares = {
        name: _hundredfold(cell) for name, cell in _values(found["models"], "unigram_precision").items()
    }
    panel(
        "shuffled-words",
        lambda: dots(shares, "words shared with its ordered translation, %", 0, labels.PER_CENT),
        f"The same translations, words counted wherever they stand (unigram precision){_hollow(results)}",
        alt=_told(shares, 0),
        sentence=False,
    )


def _hundredfold(cell: Interval) -> Interval:
    return Interval(100 * cell.value, 100 * cell.low, 100 * cell.high)


def _series(levels: list[Json], measure: str, part: str) -> dict[str, list[Interval | None]]:
    """The value or the difference of a measure at every level, by twin; without runs of other seeds."""
    names = [name for name in levels[0]["models"] if "-seed" not in name]
    found = {name: [level["models"][name][measure].get(part) for level in levels] for name in names}
    return {
        name: [None if cell is None else Interval(**cell) for cell in cells]
        for name, cells in found.items()
        if any(cells)
    }


def _lengths(results: Json) -> None:
    groups, baseline = results["lengths"]["groups"], results["baseline"]
    st.markdown("##### By length of the sentence")
    first, last = groups[0], groups[-1]
    if baseline in last["models"]:
        losses = [value(each["models"][baseline]["loss"]).value for each in (first, last)]
        st.markdown(
            f"From sources of {first['first']} to {first['last']} tokens to those of {last['first']} to "
            f"{last['last']}, the loss of {twin_name(baseline)} goes from {losses[0]:.2f} to {losses[1]:.2f} "
            f"nats per token. The last group has {last['sentences']} sentences."
        )
    names = [f"{group['first']} to {group['last']}" for group in groups]
    told = "; ".join(
        f"{n} tokens: {each['sentences']:,} sentences" for n, each in zip(names, groups, strict=True)
    )
    _by_level("lengths", results, groups, (names, "tokens of the source"), f"sentences by length ({told})")


def _by_level(
    name: str,  # the name of the figures
    results: Json,  # everything that was measured
    levels: list[Json],  # the part of the results with the models' values at every level
    places: tuple[list[str], str],  # the names of the levels, and the name of their axis
    what: str,  # describes the texts, for the captions
) -> None:
    """BLEU, and the loss against the baseline's, at every level."""
    groups, across = places
    baseline = twin_name(results["baseline"])
    panel(
        f"{name}-bleu",
        lambda: measured_groups(groups, _series(levels, "bleu", "value"), (across, "BLEU")),
        f"BLEU, each with its own interval: {what}",
        alt=f"{len(groups)} groups.",
        sentence=False,
    )
    panel(
        name,
        lambda: measured_groups(
            groups, _series(levels, "loss", "difference"), (across, "nats per token, difference")
        ),
        f"Loss of the reference, difference from {baseline} (below 0 is better), {_PAIRED}; same texts",
        alt=f"{len(groups)} groups.",
        sentence=False,
    )


def _long(results: Json) -> None:
    found = results["long"]
    levels, length = found["levels"], found["trained_length"]
    st.markdown("##### Longer than in training")
    if not levels:
        st.markdown("The test data are too small to fill a text of the trained length.")
        return
    last = levels[-1]
    scores = {name: value(each["bleu"]) for name, each in _plain(last["models"]).items()}
    best = max(scores, key=lambda name: scores[name].value)
    st.markdown(
        f"99 % of the training sources have at most {length} tokens. At {last['factor']} times that length, "
        f"no twin scores above {scores[best].value:.1f} BLEU ({twin_name(best)}, {scores[best].low:.1f} to "
        f"{scores[best].high:.1f})."
    )
    names = [f"{level['tokens']:.0f}" for level in levels]
    told = "; ".join(f"{n} tokens: {each['texts']:,} texts" for n, each in zip(names, levels, strict=True))
    factors = ", ".join(str(level["factor"]) for level in levels)
    _by_level(
        "long",
        results,
        levels,
        (names, "tokens of the source, on average"),
        f"test sentences joined up to {factors} times {length} tokens ({told}). Joined sentences are new to "
        "all twins, at any length",
    )


def _previous(results: Json, kind: Side) -> None:
    st.markdown("##### Heads that find the previous token")
    found = {name: each[kind]["previous"] for name, each in results["attention"]["models"].items()}
    cells = {
        name: _hundredfold(Interval(**each["accuracy"]))
        for name, each in found.items()
        if each["accuracy"] is not None
    }
    if not cells:
        st.markdown("There were too few sentences to measure this.")
        return
    best = max(cells, key=lambda name: cells[name].value)
    _, low, high = labels.hundredths(**found[best]["accuracy"])
    head = labels.head_phrase(found[best]["layer"], found[best]["head"])
    st.markdown(
        f"The best twin is {twin_name(best)}: {head} has its largest weight on the previous "
        f"token in {percent(cells[best].value / 100)} of its rows "
        f"({low} to {high}{labels.PER_CENT})."
    )
    stack_switch(kind, "results")
    panel(
        "previous",
        lambda: dots(cells, "rows that point at the previous token, %", 0, labels.PER_CENT),
        f"The best head of each twin's {kind}, chosen on one half of "
        f"{results['attention']['sentences']:,} sentences and measured on the other half",
        alt=_told(cells, 0),
        sentence=False,
    )


def _distance(results: Json, kind: Side, asked: Head | None) -> None:
    found = results["attention"]
    shapes = next(iter(found["models"].values()))[kind]["mass"]
    names: dict[Head | None, str] = {None: "each twin's previous-token head"}
    for place in itertools.product(range(len(shapes)), range(len(shapes[0]))):
        names[place] = f"{labels.head_phrase(*place)} of every twin"
    now = None if asked is None else fitted_head(asked, (len(shapes), len(shapes[0])))
    st.markdown("##### Attention by distance")
    pickers.choose("positions.results.head", "Head", names, now, "twin_head")
    reach = found["reach"]
    stop = 2 * reach + 1 if kind == "encoder" else reach + 1
    series: dict[str, Any] = {}
    for name, each in found["models"].items():
        layer, head = now or (each[kind]["previous"]["layer"], each[kind]["previous"]["head"])
        series[name] = each[kind]["mass"][layer][head][:stop]
    uniform = next(iter(found["models"].values()))[kind]["uniform"][:stop]
    panel(
        "profile",
        lambda: twin_lines(
            list(range(-reach, reach + 1))[:stop],
            {**series, "evenly spread": uniform},
            ("distance, key − query", "weight"),
            height=330,
        ),
        f"Mean weight of a row of the {kind} at each distance (the ends hold all greater distances), "
        f"{found['sentences']} sentences with their references",
        alt="; ".join(
            f"{twin_name(name)}: {values[reach - 1]:.2f} on the previous token"
            for name, values in series.items()
        ),
        sentence=False,
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
        f"Fewer than one source in a thousand reach position {labels.count(rare)}, and none reaches position "
        f"{labels.count(len(seen))}. From there on, the rows keep their random start, only a little shrunk "
        "by weight decay."
    )
    panel(
        "table",
        lambda: seen_norms(norms, found["seen"]),
        f"Norm of each row in the tables of “{twin_name(name)}”, and training sentences that reach the "
        "position (dotted, logarithmic)",
        alt=f"Encoder norms: {norms['encoder'][0]:.2f} at position 1, {norms['encoder'][-1]:.2f} at the end.",
        sentence=False,
    )


def _probe(results: Json) -> None:
    found = results.get("probe")
    st.markdown("##### Do positions reach cross-attention?")
    if not found:
        st.markdown("This was not measured on these twins.")
        return
    st.markdown(
        "Cross-attention applies no encoding, but it reads the encoder's output. A linear probe, fitted on "
        "one half of the sentences, reads the position of each token of the other half from that output. "
        "What it reads without any encoding comes from the words themselves. A probe shows what is there, "
        "not what the decoder uses."
    )
    values = {name: Interval(**each) for name, each in found["models"].items()}
    panel(
        "probe",
        lambda: dots(values, "R² of a linear probe of the position", 2),
        f"Share of the positions' variance that the probe explains, {found['sentences']:,} sentences, `</s>` "
        "left out; 1 means that every position is read exactly",
        alt=_told(values, 2),
        sentence=False,
    )
