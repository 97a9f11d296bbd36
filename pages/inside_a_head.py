"""Inside a head: one query step by step, from the residual stream and back into it.

The linked view's fragment runs at every step of the cursor. It feeds the slots, which a full run
has drawn.
"""

from explorer.app.address.page_values import BUILD, Inside, Maps
from explorer.app.shell.page import open_sentence_page, show_with_model
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("inside_a_head"):
    from dataclasses import replace
    from functools import partial

    import numpy as np
    import streamlit as st

    from explorer.app.address import State, session
    from explorer.app.controls import export, hushed, inform, options, part, pickers, plain, seen
    from explorer.app.controls.slots import Content, feed, slot
    from explorer.app.maps.explorer import Scene, explorer, strips_only
    from explorer.app.maps.looking import HeadSelection, Looks, looks_of
    from explorer.app.sections.inside import build, what_if
    from explorer.app.sections.inside.look import FIXED, NAMES, Contents, Look, notation
    from explorer.app.sections.inside.steps import CHANGED, STEPS, overview
    from explorer.app.server import models, per_run
    from explorer.app.server.view import View
    from explorer.app.shell.changed import of_tokens, said
    from explorer.app.shell.fitting import fit_position
    from explorer.app.shell.needs import has
    from explorer.figures.base import labels, style
    from explorer.figures.base.captions import quote
    from explorer.linked.view.feeds import window_around
    from transformer.config import AttentionKind
    from transformer.interventions import Intervention

KINDS = ("encoder", "decoder", "cross")
SEEING = (
    "One query of one head: all that the head reads from the residual stream, and all that happens "
    "until its "
    "result is added back. Purple is positive, amber is negative, clear is zero; point at a cell "
    "to see its "
    "number.\n\n"
    "An analogy: you search for a video. Your **query** is compared with every title (**key**). "
    "Instead of "
    "the best video you get a mixture of all of them (**values**), weighted by how well each title "
    "matches."
)


def controls(now: State) -> None:
    """The kind of attention, and the step."""
    source = models.known(now.model)
    steps = {
        name: f"{i} {step_of_path.short}"
        for i, (name, step_of_path) in enumerate(STEPS.items(), start=1)
    }
    with st.container(horizontal=True, vertical_alignment="center"):
        pickers.kind_picker(kind_of(now), [kind for kind in KINDS if has(source, kind)])
        pickers.switch(
            "section",
            "Step",
            {**steps, BUILD: "build one"},
            now.values(Inside).section,
            width="content",
        )


def kind_of(now: State) -> str:
    """The kind that is chosen, or the last of the model's; before a damaged model is reported, any."""
    source = models.known(now.model)
    try:
        return now.kind or "cross" if source is None else source.kind(now.kind)
    except (ValueError, OSError):
        return "cross"


def show(opened: View) -> None:
    """The step of one head; nothing but a sentence for a head that is itself changed."""
    now = session.current()
    kind = kind_of(now)
    layer, head = getattr(now, kind)
    changes = opened.translation.interventions
    acting = [
        change
        for change in changes
        if head in change.heads_of(AttentionKind(kind), layer, head + 1)
    ]
    if acting:
        pickers.head_picker(kind, (layer, head), opened.source, width="stretch")
        st.info(
            f"This head is itself changed: {'; '.join(map(said, acting))}. So the arithmetic of "
            "this page is not all that happens in it. Choose another head, or remove the change.",
            icon=":material/edit:",
        )
    elif now.values(Inside).section == BUILD:
        build.show(opened, kind)
        export.page_export()
    else:
        step(opened, now, kind)


def step(opened: View, now: State, kind: str) -> None:
    """One of the steps: the frame is drawn once, what follows the cursor is fed into its slots."""
    values = now.values(Inside)
    at = looks_of(opened, now)[kind]
    name = values.section
    look = look_at(at, now)
    with st.container(key="heads"):
        heads, letters, explanation = st.columns(
            [1, 1, 2], gap="small", vertical_alignment="center"
        )
    with heads:
        pickers.head_picker(kind, at.head, opened.source, width="stretch")
    with letters:
        pickers.choose("notation", "Notation", NAMES, values.notation)
    with explanation:
        seen(SEEING, look.symbols.latex(overview(look)))
    if kind != "cross":
        fit_position(
            "key",
            now.values(Maps).key,
            len(look.view.key_tokens),
            lambda note: st.caption(plain(note)),
        )

    def beside(now: State, looks: Looks) -> None:
        follow(looks[kind], now)

    explorer(Scene(strips_only("inside", kind), opened, (kind,), beside=beside))
    if name in CHANGED:
        what_if.controls(look, values.what_if)
    for section, content in contents(look, now).items():
        frame(section, content, look)
    for following in [*STEPS][[*STEPS].index(name) + 1 :][:1]:
        label = f"Next step: {STEPS[following].title.lower()}"
        take = partial(session.change, section=following)
        st.button(label, key="inside.next", icon=":material/arrow_forward:", on_click=take)


def look_at(at: HeadSelection, now: State) -> Look:
    """The query at the cursor, and the key under inspection.

    While a question is open, that is the first if none is chosen: the usual one is the one of most
    weight.
    """
    values = now.values(Inside)
    chosen = now.values(Maps).key
    inside = per_run.inside(at.opened, at.kind, at.head, at.cell[0])
    last = len(inside.view.key_tokens) - 1
    cross = at.kind == "cross"
    if session.visit().silent is not None:
        key = (at.cursor.source if cross else chosen) or 0
    elif cross:
        key = at.cell[1]
    elif chosen is None:
        key = int(np.argmax(inside.view.weights[0]))
    else:
        key = min(chosen, last)
    view = inside.view
    drawn = slice(*window_around(last + 1, key))
    site = at.opened.translation.config.sites[view.kind]
    look = Look(
        opened=at.opened,
        inside=inside,
        view=view,
        kind=at.kind,
        site=site,
        sizes=(*inside.w_q.weight.shape, len(inside.outputs)),
        key=key,
        key_name=f"“{plain(quote(view.key_tokens[key]))}”",
        key_label=labels.names(view.key_tokens, 6)[key],
        keys=drawn,
        symbols=notation(values.notation, at.kind),
    )
    name, number = what_if.fitted(look, values.what_if)
    outcome = (
        what_if.ARITHMETIC[name].compute(look, number) if name else None
    )  # None: the model's own
    return replace(look, outcome=outcome)


def contents(look: Look, now: State) -> dict[str, Contents]:
    """What the step shows, under what other arithmetic changes, by the name of the section."""
    values = now.values(Inside)
    changed = what_if.difference(look, values.what_if) if values.section in CHANGED else None
    above = {} if changed is None else {what_if.WHAT_IF: changed}
    return {**above, values.section: STEPS[values.section].contents(look)}


def frame(name: str, contents: Contents, look: Look) -> None:
    with st.container(key=f"inside-section-{name}"):
        left, right = st.columns([1, 2], gap="medium")
        with left:
            if name in STEPS:
                st.markdown(f"##### {[*STEPS].index(name) + 1} · {STEPS[name].title}")
            for latex in contents.latex:
                st.latex(look.symbols.latex(latex))
            slot(f"{name}.text")
            with st.container(horizontal=True, gap="small", key=f"inside-more-{name}"):
                for title in contents.asides:
                    with st.popover(title, type="tertiary", icon=":material/help:"):
                        slot(f"{name}.{title}")
                if name in STEPS:
                    save(look.opened, look.kind)
        with right:
            if contents.table:
                slot(f"{name}.table")
            for figure in contents.figures:
                slot(f"{name}.{figure.name}")


@part()
def save(opened: View, kind: str) -> None:
    """One button for the figures of a step, as they are at the moment when it is opened."""
    now = session.current()
    values = now.values(Inside)
    name = f"inside-{values.section}"
    with export.popover(f"export.{name}", 260) as is_open:
        if is_open:
            look = look_at(looks_of(opened, now)[kind], now)
            choice = dict[str, export.Picture]()
            for figure in STEPS[values.section].contents(look).figures:
                colours = "".join(f" · colours: {legend.about}" for legend in figure.legends)
                audit = None if figure.badge is None else look.inside.audit
                make = partial(style.figure, figure.spec)
                choice[figure.name] = export.Picture(make, figure.caption + colours, audit)
            export.offer(name, choice, now)


def follow(at: HeadSelection, now: State) -> None:
    """Draws the key, which follows the cursor, and fills the slots.

    What does not move has its own feed.
    """
    look = look_at(at, now)
    tokens = look.view.key_tokens
    field = "source" if look.kind == "cross" else "key"
    chosen = now.values(Maps).key
    if look.kind != "cross" and chosen is not None and chosen >= len(tokens):
        inform(f"This row has {len(tokens)} keys; key {len(tokens)} is shown.")
    with st.container(horizontal=True, vertical_alignment="center", key="inside-key"):
        names = options.keys(tokens)
        pickers.choose(f"key.{look.kind}", "Key", names, look.key, field, texts=True, width=260)
        st.caption(hushed(f"weight {look.view.weights[0, look.key]:.2f}"), width="content")
    moving = dict[str, Content]()
    fixed = dict[str, Content]()
    for section, content in contents(look, now).items():
        texts = {"text": content.text, "table": content.table, **content.asides}
        moving |= {f"{section}.{place}": text for place, text in texts.items() if text}
        for figure in content.figures:
            (fixed if figure.name in FIXED else moving)[f"{section}.{figure.name}"] = [figure]
    with st.container(key="inside-feeds"):
        feed("inside.moving", moving)
        feed("inside.fixed", fixed)


def holds(change: Intervention) -> bool:
    """Changed tokens hold on this page, and changed heads, as long as another head is shown."""
    return of_tokens(change) or change.part in ("scores", "weights", "heads")


opened = open_sentence_page(
    "inside_a_head", controls, changes=holds, kinds=("encoder", "decoder"), vectors=True
)
if opened is not None:
    show_with_model(opened, show)
