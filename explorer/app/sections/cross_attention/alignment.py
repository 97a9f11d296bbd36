"""Word alignment: the links of a head or of the best aligner, compared with links made by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from explorer.app.address import State, session
from explorer.app.controls import chart, export, inform, options, part, pickers, plain, seen
from explorer.app.controls.text import data
from explorer.app.sections.cross_attention.links import LinkRules, Text, scores
from explorer.app.server import examples
from explorer.app.server.pairs import LARGEST, linked, read_upload
from explorer.app.server.view import View
from explorer.figures.base import captions, labels
from explorer.figures.base.labels import count, percent
from explorer.figures.maps.alignment import alignment_map, size_for
from explorer.lenses.words.alignment import Rule, score
from explorer.lenses.words.links import GoldPair, Links, read_gold
from explorer.linked.view.feeds import window_around
from transformer.config import Head
from transformer.text.pairs import DataError
from transformer.text.words import Group

SHOWN, BESIDE, NAMED, SIZE = (
    100,
    40,
    4,
    520,
)  # most words on each side: drawn, with room for the table; …
ROWS = {"predicted": "row that predicts the word", "read": "row that reads the word"}
RULES: dict[Rule, str] = {
    "strongest": "strongest source word",
    "mutual": "strongest in both directions",
}
SEEING = (
    "Cross-attention between words: summed over the pieces of a source word, averaged over those "
    "of a target word, without `</s>`. Dots are links that the rule makes, squares are links made "
    "by hand (dotted: possible only); click cells to draw some. AER is 0 if the rule finds all "
    "sure links and, beyond those, only possible ones."
)
FORMULA = (
    r"\mathrm{AER} = 1 - \frac{|A\cap S| + |A\cap P|}{|A| + |S|},\quad "
    r"\mathrm{precision} = \frac{|A\cap P|}{|A|},\quad \mathrm{recall} = \frac{|A\cap S|}{|S|}"
)
MANY = "AER, many pairs"
NO_FACT = (
    "**A weight is a token's share in this head's sum, not how much it carried, nor how much it "
    "mattered.** A link made from weights is a guess at the words that belong together."
)


def show(opened: View) -> None:
    """Pairs with links made by hand, and the alignment of the chosen one, which is forced."""

    def upload(file: UploadedFile | None) -> None:
        if file is not None:
            try:
                session.visit().gold = read_upload(file.name, file.getvalue(), read_gold)
            except DataError as error:
                session.notice(str(error))

    with st.container(horizontal=True):
        with st.popover("Open links made by hand", type="tertiary", icon=":material/fact_check:"):
            sample = "The bundled sample (Tatoeba, links made by hand)"
            choose_pair("sample", sample, linked(opened.source))
            st.file_uploader(
                (
                    "Your own file, one pair per line: source, tab, target, tab, links such as "
                    "0-0 1p2 (from 0)"
                ),
                type=["tsv", "txt", "gz"],
                max_upload_size=LARGEST // 2**20,
                **session.control("gold.upload", None, upload),
            )
            choose_pair("file", "The pairs of your file", session.visit().gold)
        seen(SEEING, FORMULA)
    section(opened)


def choose_pair(origin: str, label: str, pairs: list[GoldPair]) -> None:
    """Lets the visitor choose one of some pairs, which brings its links; draws nothing for none."""
    if not pairs:
        return

    def take(place: int | None) -> None:
        if place is None:  # the entry that asks for a pair is none
            return
        pair = pairs[place]
        text = " ".join(pair.source)
        links = frozenset((a, b, (a, b) in pair.sure) for a, b in pair.possible | pair.sure)
        pair_values = {
            "text": text,
            "target": " ".join(pair.target),
            "sentence": examples.whole(text),
            "pairs": links,
            "gold": f"{origin}-{count(place)}",
        }
        session.change(**session.FRESH | pair_values)

    names: dict[int | None, str] = {None: "choose a pair"}
    for place, name in options.numbered((" ".join(pair.source) for pair in pairs), 60).items():
        names[place] = name
    chosen = chosen_pair(origin)
    if chosen not in names:
        chosen = None
    pickers.choose(f"gold.{origin}", label, names, chosen, take, texts=True, labelled=True)


def chosen_pair(origin: str) -> int | None:
    """The place of the pair that the address names, if it is of this origin."""
    name = session.current().gold
    if not name or not name.startswith(f"{origin}-"):
        return None
    return int(name.removeprefix(f"{origin}-")) - 1


@part()
def section(opened: View) -> None:
    now = session.current()
    rules = LinkRules.of(opened, now)
    controls(opened, now, rules)
    text = Text.of(opened, now.gold)
    if not text.source or not text.target:
        inform("There are no words to align.")
        return
    by_hand, outside = text.hand_links(now.pairs)
    if outside:
        st.caption(f"Links in the address that lie outside this text are left out: {outside}.")
    wide = max(len(text.source), len(text.target)) > BESIDE
    left, right = (st.container(), st.container()) if wide else st.columns([1.15, 1], gap="large")
    with right:
        every_head(opened, text, by_hand, rules)
        st.caption(NO_FACT)
    with left:
        word_map(opened, text, by_hand, rules, now)


def controls(opened: View, now: State, rules: LinkRules) -> None:
    """Head, row and rule; what is not chosen stays as it is shown."""

    def take(head: Head | None) -> None:
        if head is None:
            session.change(aligner=None, rows=None)
        else:
            choose(rules, "cross", head)

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        best = "" if rules.best is None else "the model's best aligner"
        pickers.head_picker(
            "cross", None if rules.best else rules.head, opened.source, take, other=best
        )
        of_row = partial(choose, rules, "rows")
        row = rules.aligner.rows
        pickers.choose("alignment.rows", "Row", ROWS, row, of_row, texts=True, width=215)

        def of_rule(rule: str) -> None:
            session.change(rule=None if rule == "strongest" else rule)

        pickers.choose("alignment.rule", "Rule", RULES, rules.rule, of_rule, texts=True, width=215)


def choose(rules: LinkRules, name: str, value: object) -> None:
    """Takes another head or row; the rest stays as it is shown."""
    session.change(**rules.values | {name: None if value == "predicted" else value})


def every_head(opened: View, text: Text, pair: GoldPair, rules: LinkRules) -> None:
    """The head of the lowest error against the links made by hand, and all others."""
    if not pair.possible:
        st.markdown(
            "**No links made by hand yet.** Click cells of the map to draw links, or open a pair "
            "with links above; every head is then scored against them."
        )
        return
    rates = scores(opened, text, pair, rules)
    order = sorted(rates, key=lambda at: (rates[at].aer, at))
    best = order[0]
    take = partial(choose, rules, "cross")
    st.markdown(
        f"The head with the lowest error is **{labels.head_phrase(*best)}**: AER "
        f"{percent(rates[best].aer)}, precision {percent(rates[best].precision)}, recall "
        f"{percent(rates[best].recall)}."
    )
    st.button(
        f"Open {labels.head_phrase(*best)}",
        "alignment.best",
        icon=":material/center_focus_strong:",
        on_click=take,
        args=(best,),
        disabled=best == rules.head,
    )
    facts = opened.source.heads
    fact = "aer_read" if rules.aligner.rows == "read" else "aer"
    known = facts.get("heads", {}).get("cross")
    lines = list[dict[str, object]]()
    for layer, at in order:
        rate = rates[layer, at]
        shares = {"AER": rate.aer, "precision": rate.precision, "recall": rate.recall}
        if rules.rule == "strongest" and known and fact in known[0][0]:
            shares[MANY] = known[layer][at][fact]
        line: dict[str, object] = {"attention": f"layer {count(layer)}, head {count(at)}"}
        line |= {name: 100 * share for name, share in shares.items()}
        lines.append(line | {"links": rate.links})
    number = partial(st.column_config.NumberColumn, format="%.1f %%")
    columns = {rate: number() for rate in ("AER", "precision", "recall")}
    st.dataframe(
        lines,
        hide_index=True,
        column_config=columns | {MANY: number(help=data(facts.get("data", "")))},
        height=340,
        key="alignment.table",
        on_select=lambda: session.on_pick("alignment.table", lambda row: take(order[row])),
        selection_mode="single-row",
    )
    badge = captions.badge(opened.translation.audit(), derived=True)
    st.caption(
        f"Every head, scored against {links_of(len(pair.possible))} made by hand, rule: "
        f"{RULES[rules.rule]} · {badge['text']} · choose a row to open it"
    )


def word_map(opened: View, text: Text, pair: GoldPair, rules: LinkRules, now: State) -> None:
    """The weights between words with both kinds of links; a click draws a link or takes it away."""
    words, links = rules.drawn(opened, text)
    st.markdown(f"{suggestion(rules.name, text, links, pair)} {trust(opened, rules)}")
    run = opened.translation
    if max(len(text.target), len(text.source)) > SHOWN:
        with st.container(horizontal=True, gap="small"):
            pickers.row_picker(opened, "cross", min(now.step or 0, len(run.target_tokens) - 1))
            pickers.row_picker(opened, "encoder", min(now.source or 0, len(run.source_tokens) - 1))
    window = WordWindow.around(text, links, now)
    badge = captions.badge(rules.audit(opened), derived=True)
    by_hand = f"{links_of(len(pair.possible))} made by hand"
    if now.gold:
        by_hand += f" ({now.gold})"
    caption = (
        f"Cross-attention between words · {rules.name} · {ROWS[rules.aligner.rows]} · "
        f"{RULES[rules.rule]}{window.note(text)} · dots: links of attention, squares: "
        f"{by_hand} · weights, colour from 0 to 1 · {opened.run_key.model} · {badge['text']}"
    )

    def draw() -> go.Figure:
        return drawing(words, links, text=text, pair=pair, window=window, rules=rules)

    def toggle(picked: list[float]) -> None:
        toggle_link(window.link_at(picked), pair)

    drawn = opened.key, rules.name, tuple(sorted(pair.possible)), tuple(sorted(pair.sure))
    alt = f"Word alignment by {rules.name}: {listed(text, links, len(links))}"
    key = session.control("alignment.map", drawn)["key"]
    chart(key, draw(), alt, toggle, "content", scrolls=True)
    st.caption(caption, help=str(badge["title"]))
    export.collect("alignment", export.Picture(draw, caption))
    if pair.possible:
        st.button(
            "Clear the links made by hand", "alignment.clear", type="tertiary", on_click=clear_links
        )


class WordWindow(NamedTuple):
    """The words that a map has: first word and end on each side, from 0."""

    rows: tuple[int, int]  # of the target
    columns: tuple[int, int]  # of the source

    @classmethod
    def around(cls, text: Text, links: Links, now: State) -> WordWindow:
        """The words around the cursor; without one in the source, around the partner of its row."""
        row = word_at(text.target, now.step or 0)
        if now.source is None:
            column = min((i for i, j in links if j == row), default=row)
        else:
            column = word_at(text.source, now.source)
        return cls(
            rows=window_around(len(text.target), row, SHOWN),
            columns=window_around(len(text.source), column, SHOWN),
        )

    def note(self, text: Text) -> str:
        """Which words are drawn, for a caption; empty if all are."""
        if (self.rows, self.columns) == ((0, len(text.target)), (0, len(text.source))):
            return ""
        return (
            f" · target words {count(self.rows[0])}–{self.rows[1]}, source words "
            f"{count(self.columns[0])}–{self.columns[1]}"
        )

    def inside(self, links: Links) -> set[tuple[int, int]]:
        """The links between words of the window, counted in it."""
        columns = range(*self.columns)
        rows = range(*self.rows)
        return {(i - columns.start, j - rows.start) for i, j in links if i in columns and j in rows}

    def link_at(self, picked: Sequence[float]) -> tuple[int, int]:
        """The words of a clicked cell."""
        return int(picked[0]) + self.columns[0], int(picked[1]) + self.rows[0]


def drawing(
    words: np.ndarray,  # (target words, source words) the weights
    links: Links,  # those that attention implies
    *,
    text: Text,
    pair: GoldPair,
    window: WordWindow,
    rules: LinkRules,
) -> go.Figure:
    """The map of a window."""
    rows = slice(*window.rows)
    columns = slice(*window.columns)
    target = [group.text for group in text.target[rows]]
    source = [group.text for group in text.source[columns]]
    return alignment_map(
        words[rows, columns],
        source,
        target,
        links=window.inside(links),
        sure=window.inside(pair.sure),
        possible=window.inside(pair.possible),
        titles=(f"target words, by the {ROWS[rules.aligner.rows]}", "source words"),
        size=size_for(max(len(target), len(source)), SIZE),
    )


def toggle_link(link: tuple[int, int], pair: GoldPair) -> None:
    """Takes a sure link away, or makes one."""
    pairs = {hand_link for hand_link in session.current().pairs if hand_link[:2] != link}
    if link not in pair.sure:
        pairs.add((*link, True))
    session.change(pairs=frozenset(pairs))


def clear_links() -> None:
    """Takes all links made by hand away."""
    session.change(pairs=frozenset(), gold=None)


def suggestion(name: str, text: Text, links: Links, pair: GoldPair) -> str:
    """What the rule links, and how much of it links made by hand confirm."""
    suggested = f"{name[0].upper()}{name[1:]} suggests **{links_of(len(links))} between words**"
    if links:
        suggested += f": {listed(text, links, NAMED)}"
    if len(links) <= NAMED:
        suggested += "."
    if not pair.possible:
        return suggested
    rate = score([links], [pair])
    sure = links_of(len(pair.sure), "sure ")
    return (
        f"{suggested} Against {sure} made by hand: **AER {percent(rate.aer)}**, precision "
        f"{percent(rate.precision)}, recall {percent(rate.recall)}."
    )


def trust(opened: View, rules: LinkRules) -> str:
    """Reliability of the head's suggestions, as its model's `heads.json` says."""
    facts = opened.source.heads
    fact = "aer_read" if rules.aligner.rows == "read" else "aer"
    grid = facts.get("heads", {}).get("cross")
    known = dict(grid[rules.head[0]][rules.head[1]]) if grid and rules.head else {}
    if rules.best:
        known[fact] = facts["aligner"]["aer"]
    suggestions = "These are suggestions of attention, not facts"
    if fact not in known or rules.rule != "strongest":
        return f"{suggestions}: links made by hand show how many are right."
    what = "model's best aligner" if rules.best else "head"
    diagonal = known.get("aer_diagonal")
    beside = ""
    if diagonal is not None:
        beside = f"; linking along the diagonal would have {percent(diagonal)}"
    return (
        f"{suggestions}: the alignment error rate (AER) of this {what}, over {gold_of(facts)}, "
        f"is **{percent(known[fact])}**{beside}. {plain(opened.source.header.guided_alignment)}"
    ).rstrip()


def gold_of(facts: Mapping[str, Any]) -> str:
    """The pairs on which `heads.json` measured alignment errors: how many, and of which file."""
    match = re.search(r"aer: (\d+ pairs) of ([^\s;]+)", str(facts.get("data", "")))
    if match is None:
        return "pairs with links made by hand"
    return f"the {match[1]} of {plain(data(match[2]))}"


def links_of(count: int, sort: str = "") -> str:
    return labels.counted(count, f"{sort}link")


def listed(text: Text, links: Links, most: int) -> str:
    pairs = sorted(links, key=lambda link: link[::-1])
    quoted = [plain(f"“{text.target[j].text}” – “{text.source[i].text}”") for i, j in pairs[:most]]
    if len(pairs) > most:
        quoted.append("…")
    return ", ".join(quoted)


def word_at(groups: list[Group], position: int) -> int:
    return next((n for n, group in enumerate(groups) if position < group.stop), len(groups) - 1)
