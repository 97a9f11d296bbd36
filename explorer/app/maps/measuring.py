"""The control that chooses what the cells of the maps say, and the cell of the cursor by every measure."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.parameters import link
from explorer.app.controls import inform, plain, say
from explorer.app.controls.pickers import switch
from explorer.app.maps.looking import HeadSelection, lacking
from explorer.app.server.opened import Opened
from explorer.app.shell import waiting
from explorer.figures.base import captions, labels
from explorer.figures.base.bars import percent
from explorer.figures.base.captions import KIND_NAMES
from explorer.figures.base.quantity import MEASURES, QUANTITIES
from explorer.linked.view import Gloss, Shade

_HELP = (
    "**Weight**: a key's share in the head's sum. **Carried**: the length of what it added, ‖α x W_V W_O‖, "
    "as a share of its row. **Effect**: the change of log p when this head does not see the key for this "
    "query, by running the model again for every cell. None of the three follows from another."
)
_SOURCE = "source (ALTI+)"
_SHARES = (
    "Shades each target token by the share of its prediction that comes from the source, and writes it "
    "below; the rest comes from what is written already (ALTI+, Ferrando et al. 2022). It follows the values "
    "through all layers, but not the feed-forward networks. More: *Explanation*, *why this token?*"
)


def choose(opened: Opened, now: State) -> None:
    """Draws the switch, and says why a measure that was asked for is not to be had."""
    if "cross" not in opened.kinds:
        return
    names = {each: QUANTITIES[each].name for each in MEASURES}
    why = lacking(opened, now.measure)
    switch("measure", "Cells say", names, "weight" if why else now.measure, help=_HELP, width="content")
    if why is not None:
        st.caption(plain(why), width="content")


def shares(opened: Opened, now: State) -> None:
    """Draws the button that shades the translation by how much of it comes from the source."""
    if set(opened.kinds) != set(KIND_NAMES):
        return
    cannot = lacking(opened, "effect")
    st.button(
        "Source share",
        type="tertiary",
        icon=":material/check_box:" if now.shares else ":material/check_box_outline_blank:",
        help=cannot or _SHARES,
        disabled=cannot is not None,
        key="source-share",
        on_click=_turn,
        args=(not now.shares,),
    )


def _turn(on: bool) -> None:
    session.change(shares=on)


def shaded(opened: Opened, now: State) -> list[Shade]:
    """How dark each target token is; nothing if the visitor did not ask, or the model does not allow it."""
    if not now.shares or set(opened.kinds) != set(KIND_NAMES) or lacking(opened, "effect") is not None:
        return []
    from explorer.app.maps import measures  # PyTorch comes with it

    found = measures.sources(opened).source.sum(1).tolist()
    return [
        Shade(share=share, text=f"{said} from the {_SOURCE}", number=Gloss(text=said, origin=_SOURCE))
        for share, said in zip(found, map(percent, found), strict=True)
    ]


def why(opened: Opened) -> None:
    """Draws a button that opens why the token of the cursor was written, and not another."""
    if "cross" not in opened.kinds:
        return
    cannot = lacking(opened, "effect")
    told = "Opens the reasons for the token of this step: what spoke for it and not for another candidate"
    icon, off = ":material/balance:", cannot is not None
    if st.button("Why this token?", type="tertiary", icon=icon, help=cannot or told, disabled=off):
        st.switch_page("pages/explanation.py", query_params=link(session.current(), view="why"))


def prepare(looks: Iterable[HeadSelection]) -> None:
    """Measures the effects that are about to be drawn, with a bar; says which map is too large."""
    with st.container():
        for look in looks:
            if look.measure != "effect":
                continue
            from explorer.app.maps import measures  # PyTorch comes with it

            count = measures.count(look.translation, look.kind, look.head, look.window)
            if count > measures.MOST_CELLS_OF_MAP:
                inform(_too_many(look, count, measures.MOST_CELLS_OF_MAP))
                continue
            with waiting.progress(f"Running the model again without each of {count} cells") as tell:
                measures.effects_of(look.opened, look.kind, look.head, look.window, tell)


def _too_many(look: HeadSelection, count: int, most: int) -> str:
    name = captions.KIND_NAMES[look.kind].lower()
    return (
        f"The map of {name} has {count:,} visible cells, and each takes a run of its own; effects are "
        f"measured for at most {most}. It shows weights: choose fewer rows and columns under "
        "Display."
    )


def cell(look: HeadSelection) -> None:
    """Draws a button that opens every measure of the cursor's cell, measured only then."""
    with st.popover(
        "This cell", type="tertiary", icon=":material/center_focus_strong:", on_change="rerun"
    ) as place:
        if place.open and session.silent() is not None:
            say("")
        elif place.open and (why := lacking(look.opened, "effect")) is not None:
            st.caption(plain(why))
        elif place.open:
            with waiting.while_loading(), st.container(key="cell-measures"):
                st.markdown(_table(look))


def _table(look: HeadSelection) -> str:
    from explorer.app.maps import measures

    (row, key), run = look.cell, look.translation
    step = row if look.kind != "encoder" else look.cursor.step
    found = measures.of_cell(look.opened, look.kind, look.head, look.cell, step)
    tokens = run.labels(look.kind)
    rows = tokens.predicted if look.kind == "cross" and tokens.predicted else tokens.queries
    names = labels.names(rows), labels.names(tokens.keys)
    token = plain(captions.quote(run.target_tokens[step]))
    lines = [
        f"**{plain(names[0][row])} → {plain(names[1][key])}**, {labels.head_phrase(*look.head)}",
        "",
        "| measure | value | unit |",
        "| --- | ---: | --- |",
        *(f"| {name} | {value} | {unit} |" for name, value, unit in found),
        "",
        f"Δ log p is that of “{token}”, each by a run of its own.",
    ]
    return "\n".join(lines)
