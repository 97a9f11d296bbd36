"""Word alignment: the links of a head, a layer or a chosen mean, compared with links made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import ABOVE
from explorer.app.controls import chart, export, inform, part, pickers, plain, seen
from explorer.app.controls.text import data
from explorer.app.sections.cross_attention import aligned, gold
from explorer.app.server.opened import Opened
from explorer.figures.base import captions, labels
from explorer.figures.base.bars import percent
from explorer.figures.maps.alignment import alignment_map, size_for
from explorer.lenses.words.alignment import AlignmentScore, Rule, score
from explorer.lenses.words.links import GoldPair, Links
from explorer.linked.view import window_around
from transformer.text.words import Group

T = TypeVar("T")
_SHOWN = 100
"""The largest number of words that are drawn on each side; a longer text is drawn in a window."""
_BESIDE = 40
"""The largest number of words on each side of a map that has room for the table beside it."""
_NAMED = 4
_SIZE = 520
_ROWS = {"predicted": "row that predicts the word", "read": "row that reads the word"}
_RULES: dict[Rule, str] = {
    "strongest": "strongest source word",
    "mutual": "strongest in both directions",
    "above": "every weight above",
}
_SEEING = (
    "Cross-attention between words: summed over the pieces of a source word, averaged over the pieces of a "
    "target word, without `</s>`. Dots are links that the rule makes, squares are links made by hand "
    "(dotted: possible only). Click cells to draw links. AER is 0 if the rule finds all sure links and, "
    "beyond those, only possible ones."
)
_FORMULA = (
    r"\mathrm{AER} = 1 - \frac{|A\cap S| + |A\cap P|}{|A| + |S|},\quad "
    r"\mathrm{precision} = \frac{|A\cap P|}{|A|},\quad \mathrm{recall} = \frac{|A\cap S|}{|S|}"
)
_PLAIN = {"attention", "links"}
_MANY = "AER, many pairs"


def show(opened: Opened) -> None:
    with st.container(horizontal=True):
        gold.picker(opened.source, session.current().gold)
        seen(_SEEING, _FORMULA)
    _section(opened)


@part
def _section(opened: Opened) -> None:
    now = session.current()
    choice = aligned.LinkRules.of(opened, now)
    _controls(opened, now, choice)
    text = aligned.Text.of(opened, now.gold)
    if not text.source or not text.target:
        inform("There are no words to align.")
        return
    by_hand, outside = text.hand_links(now.pairs)
    if outside:
        st.caption(f"Links in the address that lie outside this text are left out: {outside}.")
    wide = max(len(text.source), len(text.target)) > _BESIDE
    picture, table = (st.container(), st.container()) if wide else st.columns([1.15, 1], gap="large")
    with table:
        _table(opened, text, by_hand, choice)
        st.caption(
            "**A weight is a token's share in this head's sum, not how much it carried, nor how much it "
            "mattered.** A link made from weights is a "
            "guess at the words that belong together."
        )
    with picture:
        _picture(opened, text, by_hand, choice, now)


def _controls(opened: Opened, now: State, choice: aligned.LinkRules) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width=200):
            pickers.head_picker("cross", choice.head, opened.source, _chooser(choice, "cross"))
        with st.container(width=265):
            means = aligned.means(opened)
            _select("mean", "Head or mean", means, choice.mean, _chooser(choice, "mean"))
        with st.container(width=215):
            _select("rows", "Row", _ROWS, "read" if choice.reading else "predicted", _take_rows(choice))
        with st.container(width=215):
            _select("rule", "Rule", _RULES, choice.rule, _take_rule)
        if choice.rule == "above":
            with st.container(width=130):
                _least(choice.least)
        if choice.is_own(opened):
            st.button(
                "Best aligner",
                type="tertiary",
                icon=":material/undo:",
                help="Back to the head or mean with the lowest alignment error of this model",
                on_click=_take_best,
                key="alignment.own",
            )
        elif choice.head != now.cross and choice.mean is None:
            st.caption("the model's best aligner; your head stays chosen elsewhere", width="content")


def _take_best() -> None:
    session.change(aligner=None, mean=None, rows=None)


def _chooser(choice: aligned.LinkRules, name: str) -> Callable[[Any], object]:
    """Takes one value of the visitor and keeps the others as they are shown."""
    return lambda value: session.change(**{**choice.values, name: value})


def _take_rows(choice: aligned.LinkRules) -> Callable[[str], object]:
    take = _chooser(choice, "rows")
    return lambda name: take(name if name == "read" else None)


def _least(value: float) -> None:
    st.number_input(
        "Least weight",
        0.01,
        1.0,
        value,
        0.05,
        label_visibility="collapsed",
        **pickers.control("least", value, lambda least: session.change(rule=f"{ABOVE}{least:.2f}")),
    )


def _select(name: str, label: str, options: dict[T, str], value: T, take: Callable[[T], object]) -> None:
    pickers.choose(f"alignment.{name}", label, options, value, take, texts=True)


def _take_rule(rule: str) -> None:
    session.change(rule={"strongest": None, "above": f"{ABOVE}{aligned.LEAST:.2f}"}.get(rule, rule))


def _table(opened: Opened, text: aligned.Text, pair: GoldPair, choice: aligned.LinkRules) -> None:
    if not pair.possible:
        st.markdown(
            "**No links made by hand yet.** Click cells of the map to draw links, or open a pair with links "
            "above. Every head is then scored here against these links."
        )
        return
    found = aligned.scores(opened, text, pair, choice)
    order = sorted(found, key=lambda each: (found[each].aer, each[0], each[1] is None, each[1] or 0))
    best = next(each for each in order if each[1] is not None)
    st.markdown(_best(found, best))
    st.button(
        f"Open {labels.head_phrase(best[0], best[1] or 0)}",
        icon=":material/center_focus_strong:",
        on_click=_open,
        args=(best, choice),
        disabled=best == choice.head and choice.mean is None,
        key="alignment.best",
    )
    known = opened.source.heads.get("heads", {}).get("cross")
    lines = [_line(aligner, found[aligner], known, choice) for aligner in order]
    over = data(opened.source.heads.get("data", ""))
    rates = {
        name: st.column_config.NumberColumn(format="%.1f %%", help=over if name == _MANY else None)
        for name in lines[0]
        if name not in _PLAIN
    }
    st.dataframe(
        lines,
        hide_index=True,
        column_config=rates,
        height=340,
        key="alignment.table",
        on_select=lambda: session.on_pick("alignment.table", lambda row: _open(order[row], choice)),
        selection_mode="single-row",
    )
    badge = captions.badge(aligned.audit(opened), derived=True)
    st.caption(
        f"Every head, scored against {_links(len(pair.possible))} made by hand, rule: "
        f"{_RULES[choice.rule]} · {badge['text']} · choose a row to open it"
    )


def _best(found: dict[aligned.Source, AlignmentScore], best: aligned.Source) -> str:
    rate = found[best]
    return (
        f"The head with the lowest error is **{labels.head_phrase(best[0], best[1] or 0)}**: "
        f"AER {percent(rate.aer)}, precision {percent(rate.precision)}, recall {percent(rate.recall)}."
    )


def _line(
    aligner: aligned.Source,
    rate: AlignmentScore,
    known: list[list[dict[str, float]]] | None,
    choice: aligned.LinkRules,
) -> dict[str, object]:
    layer, head = aligner
    name = f"layer {labels.count(layer)}, " + ("mean" if head is None else f"head {labels.count(head)}")
    line = {
        "attention": name,
        "AER": 100 * rate.aer,
        "precision": 100 * rate.precision,
        "recall": 100 * rate.recall,
    }
    line |= {"links": rate.links}
    fact = "aer_read" if choice.reading else "aer"
    if choice.rule == "strongest" and known and fact in known[0][0]:
        line[_MANY] = None if head is None else 100 * known[layer][head][fact]
    return line


def _open(source: aligned.Source, choice: aligned.LinkRules) -> None:
    layer, head = source
    chosen = {"mean": (layer, layer)} if head is None else {"cross": (layer, head), "mean": None}
    session.change(**{**choice.values, **chosen})


def _picture(
    opened: Opened, text: aligned.Text, pair: GoldPair, choice: aligned.LinkRules, now: State
) -> None:
    weights, name = aligned.chosen_map(opened, choice)
    words, (found,) = aligned.align(weights, text, choice)
    st.markdown(f"{_sentence(name, text, found, pair)} {_trust(opened, choice)}")
    at = _cursor_word(text.target, now.step or 0)
    if max(len(text.source), len(text.target)) > _SHOWN:
        _move(opened, now)
    partner = _partner(found, at) if now.source is None else _cursor_word(text.source, now.source)
    columns = window_around(len(text.source), partner, _SHOWN)
    rows = window_around(len(text.target), at, _SHOWN)
    quantity = _quantity(choice, pair, now.gold, _part(rows, columns, text))
    caption = f"Cross-attention between words · {name} · {quantity} · {opened.asked.model}"

    def draw() -> go.Figure:
        def inside(pairs: Links) -> set[tuple[int, int]]:
            return {
                (i - columns[0], j - rows[0])
                for i, j in pairs
                if columns[0] <= i < columns[1] and rows[0] <= j < rows[1]
            }

        reading = _ROWS["read" if choice.reading else "predicted"]
        return alignment_map(
            words[rows[0] : rows[1], columns[0] : columns[1]],
            [group.text for group in text.source[slice(*columns)]],
            [group.text for group in text.target[slice(*rows)]],
            inside(found),
            inside(pair.sure),
            inside(pair.possible),
            (f"target words, by the {reading}", "source words"),
            size_for(max(rows[1] - rows[0], columns[1] - columns[0]), _SIZE),
        )

    def toggle(picked: list[float]) -> None:
        link = int(picked[0]) + columns[0], int(picked[1]) + rows[0]
        held = {each for each in session.current().pairs if each[:2] != link}
        session.change(pairs=frozenset(held if link in pair.sure else held | {(*link, True)}))

    key = session.control(
        "alignment.map", (opened.trace, name, tuple(sorted(pair.possible)), tuple(sorted(pair.sure)))
    )
    alt = f"Word alignment by {name}: {_listed(text, found, len(found))}"
    chart(key, draw(), alt, toggle, "content", scrolls=True)
    badge = captions.badge(aligned.audit(opened, choice), derived=True)
    st.caption(f"{caption} · {badge['text']}", help=str(badge["title"]))
    with st.container(horizontal=True):
        export.picture("alignment", draw, f"{caption} · {badge['text']}")
        if pair.possible:
            st.button("Clear the links made by hand", type="tertiary", on_click=_clear, key="alignment.clear")


def _clear() -> None:
    session.change(pairs=frozenset(), gold=None)


def _sentence(name: str, text: aligned.Text, found: Links, pair: GoldPair) -> str:
    told = f"{name[0].upper()}{name[1:]} suggests **{_links(len(found))} between words**"
    end = "" if len(found) > _NAMED else "."
    told += f": {_listed(text, found, _NAMED)}{end}" if found else "."
    if not pair.possible:
        return told
    rate = score([found], [pair])
    return (
        f"{told} Against {_links(len(pair.sure), 'sure ')} made by hand: **AER {percent(rate.aer)}**, "
        f"precision {percent(rate.precision)}, recall {percent(rate.recall)}."
    )


def _links(count: int, sort: str = "") -> str:
    return f"{count} {sort}link{'s' * (count != 1)}"


def _trust(opened: Opened, choice: aligned.LinkRules) -> str:
    """Reliability of the head's suggestions, as its model's `heads.json` says."""
    facts = opened.source.heads
    grid = facts.get("heads", {}).get("cross")
    layer, head = choice.head
    fact = "aer_read" if choice.reading else "aer"
    best = "aligner" in facts and not choice.is_own(opened)
    known = dict(grid[layer][head]) if grid and choice.mean is None else {}
    if best:
        known[fact] = facts["aligner"]["aer"]
    if fact not in known or choice.rule != "strongest":
        return "These are suggestions of attention, not facts: links made by hand show how many are right."
    what = "model's best aligner" if best else "head"
    diagonal = known.get("aer_diagonal")
    beside = "" if diagonal is None else f"; linking along the diagonal would have {percent(diagonal)}"
    return (
        f"These are suggestions of attention, not facts: the alignment error rate (AER) of this {what}, over "
        f"pairs with links made by hand, is **{percent(known[fact])}**{beside}. {plain(opened.source.guided)}"
    ).rstrip()


def _move(opened: Opened, now: State) -> None:
    """Moves the window of a very long text along both sides."""
    run = opened.translation
    with st.container(horizontal=True, gap="small"):
        with st.container(width=260):
            pickers.row_picker(opened, "cross", min(now.step or 0, len(run.target_tokens) - 1))
        with st.container(width=260):
            pickers.row_picker(opened, "encoder", min(now.source or 0, len(run.source_tokens) - 1))


def _listed(text: aligned.Text, found: Links, most: int) -> str:
    pairs = sorted(found, key=lambda link: (link[1], link[0]))
    told = [plain(f"“{text.target[j].text}” – “{text.source[i].text}”") for i, j in pairs[:most]]
    return ", ".join(told) + (", …" if len(pairs) > most else "")


def _quantity(choice: aligned.LinkRules, pair: GoldPair, origin: str | None, part: str) -> str:
    """Caption of the map: its rows, its rule, the part that is drawn, and the links."""
    row = _ROWS["read" if choice.reading else "predicted"]
    rule = _RULES[choice.rule] + (f" {choice.least:.2f}" if choice.rule == "above" else "")
    by_hand = f"{_links(len(pair.possible))} made by hand" + (f" ({origin})" if origin else "")
    return (
        f"{row} · {rule}{part} · dots: links of attention, squares: {by_hand} · weights, colour from 0 to 1"
    )


def _part(rows: tuple[int, int], columns: tuple[int, int], text: aligned.Text) -> str:
    """The words that are drawn, as a part of the caption; empty if all words are drawn."""
    if (len(text.target), len(text.source)) == (rows[1], columns[1]) and not rows[0] and not columns[0]:
        return ""
    return (
        f" · target words {labels.count(rows[0])}–{rows[1]}"
        f", source words {labels.count(columns[0])}–{columns[1]}"
    )


def _cursor_word(groups: list[Group], position: int) -> int:
    return next((n for n, group in enumerate(groups) if position < group.stop), len(groups) - 1)


def _partner(found: Links, word: int) -> int:
    return min((i for i, j in found if j == word), default=word)
