"""How maps are drawn and what their cells say: the controls that pages with linked maps share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import HIDEABLE
from explorer.app.address.page_values import Maps
from explorer.app.address.parameters import link
from explorer.app.address.state import SHARED
from explorer.app.controls import inform, plain, say
from explorer.app.controls.pickers import slide, switch
from explorer.app.maps.looking import HeadSelection, lacking
from explorer.app.server import models
from explorer.app.server.view import View
from explorer.app.shell import waiting
from explorer.figures.base import captions, labels
from explorer.figures.base.captions import KIND_NAMES, MEASURES, QUANTITIES, summary
from explorer.figures.base.labels import percent
from explorer.lenses.words.reading import ReadView
from explorer.lenses.words.together import as_one, rows_of
from explorer.linked.view.wire import Gloss, Shade
from transformer.config import Head

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

SHOWS = {"matrix": "matrix", "lines": "lines", "strongest": "strongest keys"}
_HIDE = {"special": "Hide special tokens", "punctuation": "Hide punctuation"}
_SCALES = {"linear": "linear", "sqrt": "square root", "log": "logarithmic"}
_ROWS = {"read": "token read", "predicted": "token predicted"}
_LINKS = {"mass": "share of each row", "weight": "weight"}
_WORDS = (
    "Merges the pieces of each word. Weights are summed over the pieces of a key and averaged "
    "over the pieces of a query, so each row still sums to 1. Chinese, Japanese and Thai texts "
    "keep their pieces."
)
_MEASURES = (
    "**Weight**: a key's share in the head's sum. **Carried**: the length of what it added, ‖α x "
    "W_V W_O‖, as a share of its row. **Effect**: the change of log p when this head does not see "
    "the key for this query, by running the model again for every cell. None of the three follows "
    "from another."
)
_MASK = ":material/visibility_off:"
_SOURCE = "source (ALTI+)"
_SHARES = (
    "Shades each target token by the share of its prediction that comes from the source, and "
    "writes it below; the rest comes from what is written already (ALTI+, Ferrando et al. 2022). "
    "It follows the values through all layers, but not the feed-forward networks. More: "
    "*Explanation*, *why this token?*"
)
_WHY = (
    "Opens the reasons for the token of this step: what spoke for it and not for another candidate"
)


def popover(
    kinds: Iterable[str],  # the kinds of maps that these settings change
    now: State,
    more: Callable[[], None] | None = None,  # draws further settings
) -> None:
    """Draws one button for words, hidden tokens, rows, colours and windows.

    Its label says what is on.
    """
    on = ", ".join(["words"] * now.words + [f"no {name}" for name in now.hide])
    kinds = tuple(kinds)

    def hide(name: str, hidden: bool) -> None:
        names = {*session.current().hide} - {name} | ({name} if hidden else set())
        session.change(hide=tuple(hideable for hideable in HIDEABLE if hideable in names))

    with st.popover(f"Display{f': {on}' if on else ''}", type="tertiary", icon=":material/tune:"):
        st.toggle("Words", now.words, help=_WORDS, **session.control("words", now.words))
        for name, label in _HIDE.items():
            is_on = name in now.hide
            st.toggle(label, is_on, **session.control(f"hide.{name}", is_on, partial(hide, name)))
        switch("scale", "Colours", _SCALES, now.scale, labelled=True)
        if set(kinds) - {"encoder"}:
            usual = {"cross": "predicted", "decoder": "read"}.get("".join(kinds), "usual")
            names = _ROWS if usual in _ROWS else {"usual": "usual token", **_ROWS}

            def take(rows: str) -> None:
                session.change(rows=None if rows == usual else rows)

            switch(
                "rows",
                "Decoder rows are named by the",
                names,
                now.rows or usual,
                take,
                labelled=True,
            )
        sizes = {n: str(n) for n in SHARED["window"].kind.choices}
        switch("window", "At most this many rows and columns", sizes, now.window, labelled=True)
        if more is not None:
            more()


def lines(look: HeadSelection, now: State) -> None:
    """Draws the controls that choose the lines, and the other heads whose lines are drawn as
    well."""
    name, _, number = now.links.partition("-")
    left, middle, right = st.columns([1.5, 1.5, 2], gap="medium", vertical_alignment="bottom")
    with left:
        usual = {"mass": "mass-70", "weight": "weight-10"}

        def take(by: str) -> None:
            session.change(links=usual[by])

        switch("links.by", "Keep links by", _LINKS, name, take, labelled=True)
    with middle:
        label = "Share of each row, %" if name == "mass" else "Smallest weight, %"

        def least(share: int) -> None:
            session.change(links=f"{name}-{share}")

        slide("links", label, int(number), least, ends=(0, 100))
    with right:
        layers, heads = look.opened.translation.config.sizes[look.kind]
        further = [(i, j) for i in range(layers) for j in range(heads) if (i, j) != look.head]
        more = [head for head in now.values(Maps).more or () if head in further]

        def keep(heads: Iterable[Head]) -> None:
            session.change(more=tuple(map(tuple, heads)) or None)

        def name_of(head: Head) -> str:
            return labels.head_name(*head)

        st.multiselect(
            "Other heads",
            further,
            more,
            format_func=name_of,
            max_selections=3,
            placeholder="Up to three",
            **session.control("more", more, keep),
        )


class LinkRule(NamedTuple):
    """Which links are drawn."""

    mass: float | None  # the share of each row that they carry; None: any
    least: float  # the smallest weight
    name: str  # the links in words


def link_rule(rule: str) -> LinkRule:
    """What the value `links` of a state keeps."""
    name, _, number = rule.partition("-")
    share = int(number) / 100
    if name == "mass":
        return LinkRule(share, 0.0, f"the links that carry {number}{labels.PER_CENT} of each row")
    return LinkRule(None, share, f"the links of at least {share:.2f}")


def tables(views: Callable[[], Sequence[ReadView]]) -> None:
    """Draws a button that opens the numbers of the maps.

    The numbers are read and sent only then.
    """
    with st.popover("Table", type="tertiary", icon=":material/table:", on_change="rerun") as place:
        if place.open and session.visit().silent is not None:
            say("")
        elif place.open:
            with waiting.while_loading():
                models.loading.wait()  # with PyTorch comes pandas
            tables_shown = views()
            for view, tab in zip(
                tables_shown, st.tabs([named(view) for view in tables_shown]), strict=True
            ):
                with tab:
                    st.markdown(plain(summary(view)))
                    chosen = session.cursor().chosen
                    rows = rows_of(view.rows, chosen.of_rows(view.kind))
                    if rows:
                        name = captions.together_name(view, rows, chosen.together)
                        st.markdown(plain(f"The last line is the {name}."))
                    cells = weights(view, rows, chosen.together)
                    st.dataframe(cells, height=420, alt=summary(view))


def named(view: ReadView) -> str:
    """What the maps of a view are called."""
    return captions.kind_name(view.kind, view.title)


def weights(view: ReadView, together: Sequence[int] = (), how: str = "mean") -> pandas.DataFrame:
    """The weights of a view; after all rows, the one that several are looked at as.

    Tokens, numbered from 1, name rows and columns, and masked cells are empty.
    """
    import pandas

    cells = pandas.DataFrame(view.weights.round(4)).where(view.mask)
    rows = labels.row_names(view.query_tokens, view.predicted_tokens)
    cells.index, cells.columns = (
        [f"{labels.count(i)} {name}" for i, name in enumerate(names)]
        for names in (rows, labels.names(view.key_tokens))
    )
    if together:
        one = as_one(view, together, how)
        name = f"{how} of {len(together)} rows"
        cells.loc[name] = np.where(one.mask, one.weights.round(4), np.nan)[0]
    return cells


def measure(opened: View, now: State) -> None:
    """Draws the switch, and says why a measure that was asked for is not to be had."""
    names = {measure: QUANTITIES[measure].name for measure in MEASURES}
    why = lacking(opened, now.measure)
    value = "weight" if why else now.measure
    switch("measure", "Cells say", names, value, help=_MEASURES, width="content")
    if why is not None:
        st.caption(plain(why), width="content")


def prepare(looks: Iterable[HeadSelection]) -> None:
    """Measures the effects that are about to be drawn, with a bar; says which map is too large."""
    for look in (look for look in looks if look.measure == "effect"):
        from explorer.app.maps import measures  # PyTorch comes with it
        from explorer.lenses.measures.effect import effect_in

        most = measures.MOST_CELLS_OF_MAP
        seen = look.opened.translation.mask(look.kind, *look.head)
        count = int(seen[look.window.queries, look.window.keys].sum())
        if count > most:
            inform(
                f"The map of {KIND_NAMES[look.kind].lower()} has {count:,} visible cells, and each "
                f"takes a run of its own; effects are measured for at most {most}. It shows "
                "weights: choose fewer rows and columns under Display."
            )
            continue
        with waiting.progress(f"Running the model again without each of {count} cells") as tell:
            measures.of_run(look.opened, effect_in, look.kind, *look.head, look.window, tell=tell)


def shares(opened: View, now: State) -> None:
    """Draws the button that shades the translation by how much of it comes from the source."""
    if set(opened.kinds) == set(KIND_NAMES):
        cannot = lacking(opened, "effect")
        st.button(
            "Source share",
            "source-share",
            cannot or _SHARES,
            type="tertiary",
            icon=":material/check_box:" if now.shares else ":material/check_box_outline_blank:",
            disabled=cannot is not None,
            on_click=session.change,
            kwargs={"shares": not now.shares},
        )


def shaded(opened: View) -> list[Shade]:
    """How dark each target token is; nothing if the model does not allow it."""
    shades = list[Shade]()
    if set(opened.kinds) != set(KIND_NAMES) or lacking(opened, "effect") is not None:
        return shades
    from explorer import lenses
    from explorer.app.maps import measures  # PyTorch comes with it

    for share in measures.of_run(opened, lenses.alti).source.sum(1).tolist():
        text = f"{percent(share)} from the {_SOURCE}"
        shades.append(
            Shade(share=share, text=text, number=Gloss(text=percent(share), origin=_SOURCE))
        )
    return shades


def why(opened: View) -> None:
    """Draws a button that opens why the token of the cursor was written, and not another."""
    cannot = lacking(opened, "effect")
    icon = ":material/balance:"
    clicked = st.button(
        "Why this token?",
        type="tertiary",
        icon=icon,
        help=cannot or _WHY,
        disabled=cannot is not None,
    )
    if clicked:
        st.switch_page("pages/explanation.py", query_params=link(session.current(), view="why"))


def mask(opened: View, now: State) -> None:
    """Draws a button that masks the word of the cursor."""
    from explorer.app.maps import filling

    word = filling.word_at(opened, now.source or 0)
    if word is None or filling.is_masked(opened, word):
        st.button("Mask this word", "mask-word", type="tertiary", icon=_MASK, disabled=True)
        return
    st.button(
        f"Mask “{plain(word.text)}”",
        "mask-word",
        type="tertiary",
        icon=_MASK,
        on_click=lambda: session.change(**filling.mask_word(opened, word.start)),
    )


def cell(look: HeadSelection) -> None:
    """Draws a button that opens every measure of the cursor's cell, measured only then."""
    icon = ":material/center_focus_strong:"
    with st.popover("This cell", type="tertiary", icon=icon, on_change="rerun") as place:
        if not place.open:
            return
        if session.visit().silent is not None:
            say("")
        elif (cannot := lacking(look.opened, "effect")) is not None:
            st.caption(plain(cannot))
        else:
            with waiting.while_loading(), st.container(key="cell-measures"):
                st.markdown(cell_table(look))


def cell_table(look: HeadSelection) -> str:
    from explorer.app.maps import measures

    (row, key), run = look.cell, look.opened.translation
    step = look.opened.predicted_at(look.cursor)
    assert step is not None
    if run.labels(look.kind).predicted is not None:
        step = row
    tokens = run.labels(look.kind)
    rows = tokens.predicted if look.kind == "cross" and tokens.predicted else tokens.queries
    query, read = (plain(labels.names(of)[i]) for of, i in ((rows, row), (tokens.keys, key)))
    lines = measures.of_cell(look.opened, look.kind, look.head, look.cell, step)
    badge = captions.badge(measures.audit_of_cell(look.opened, look.kind, look.head))
    return "\n".join(
        (
            f"**{query} → {read}**, {labels.head_phrase(*look.head)}\n",
            "| measure | value | unit |\n| --- | ---: | --- |",
            *(f"| {name} | {value} | {unit} |" for name, value, unit in lines),
            f"\nΔ log p is that of “{plain(captions.quote(run.predictions[step].token))}”, each by "
            "its own run. "
            f"{badge['text']}.",
        )
    )
