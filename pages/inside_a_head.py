"""Inside a head: one query step by step, from the residual stream and back into it.

The linked view's fragment runs at every step of the cursor. It feeds the slots, which a full run has drawn.
"""

from __future__ import annotations

from explorer.app.shell.page import open_sentence_page, with_model
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("inside_a_head"):
    import numpy as np
    import streamlit as st

    from explorer.app.address import State, session
    from explorer.app.address.kinds import POSITION, one_of
    from explorer.app.address.state import own
    from explorer.app.controls import export, hushed, inform, options, part, pickers, seen
    from explorer.app.controls.slots import Content, feed, slot
    from explorer.app.maps.explorer import Scene, explorer, strips_only
    from explorer.app.maps.looking import HeadSelection, Looks, looks_of
    from explorer.app.sections.inside import build, formulas, what_if
    from explorer.app.sections.inside.look import Contents, Look
    from explorer.app.sections.inside.notation import NAMES, notation
    from explorer.app.sections.inside.steps import CHANGED, STEPS
    from explorer.app.server import models, per_run
    from explorer.app.server.view import View
    from explorer.app.shell.changed import of_tokens, said
    from explorer.app.shell.fitting import fitted_here
    from explorer.app.shell.models.needs import has
    from explorer.figures.base import labels
    from explorer.linked.view import window_around
    from transformer.config import AttentionKind
    from transformer.interventions import Intervention

KINDS = {"encoder": "encoder", "decoder": "masked decoder", "cross": "cross-attention"}
USUAL, FIRST, BUILD = "cross", "products", "build"
own("key", POSITION)  # that is shown in self-attention
own("section", one_of(*STEPS, BUILD))
own("notation", one_of("paper", "lecture"), "paper")  # whose symbols are written
SEEING = (
    "One query of one head: all that the head reads from the residual stream, and all that happens until its "
    "result is added back. Purple is positive, amber is negative, clear is zero; point at a cell to see its "
    "number. The formula beside it gives the same number again.\n\n"
    "An analogy: you search for a video. Your **query** is compared with every title (**key**). Instead of "
    "the best video you get a mixture of all of them (**values**), weighted by how well each title matches."
)


def controls(now: State) -> None:
    """The kind of attention, and the step."""
    kind, source = kind_of(now), models.known(now.model)
    steps = {name: f"{i} {each.short}" for i, (name, each) in enumerate(STEPS.items(), start=1)}
    steps[BUILD] = "build one"
    with st.container(horizontal=True, vertical_alignment="center"):
        pickers.switch(
            "kind",
            "Kind of attention",
            {kind: name for kind, name in KINDS.items() if has(source, kind)},
            kind,
            lambda each: session.change(kind=None if each == USUAL else each),
            width="content",
        )
        pickers.switch(
            "section",
            "Step",
            steps,
            now.section or FIRST,
            lambda each: session.change(section=None if each == FIRST else each),
            width="content",
        )


def kind_of(now: State) -> str:
    """The kind of attention that is shown."""
    return now.kind if now.kind and has(models.known(now.model), now.kind) else USUAL


def holds(change: Intervention) -> bool:
    """Whether a change holds on this page: changed tokens, and heads, as long as another head is shown."""
    return of_tokens(change) or change.part in ("scores", "weights", "heads")


def show(opened: View) -> None:
    """The step of one head; nothing but a sentence for a head that is itself changed."""
    now = session.current()
    kind, name = kind_of(now), now.section or FIRST
    layer, head = getattr(now, kind)
    changes = opened.translation.interventions
    acting = [each for each in changes if head in each.heads_of(AttentionKind(kind), layer, head + 1)]
    if acting:
        pickers.head_picker(kind, (layer, head), opened.source)
        st.info(
            f"This head is itself changed: {'; '.join(map(said, acting))}. So the arithmetic of this page is "
            "not all that happens in it. Choose another head, or remove the change.",
            icon=":material/edit:",
        )
    elif name == BUILD:
        build.show(opened, kind)
    else:
        step(opened, now, kind, name)


def step(opened: View, now: State, kind: str, name: str) -> None:
    """One of the steps: the frame is drawn once, what follows the cursor is fed into its slots."""
    at = looks_of(opened, now)[kind]
    look = look_at(at, now)
    with st.container(key="heads"):
        heads, letters, explanation = st.columns([1, 1, 2], gap="small", vertical_alignment="center")
    with heads:
        pickers.head_picker(kind, at.head, opened.source)
    with letters:
        pickers.choose("notation", "Notation", NAMES, now.notation)
    with explanation:
        seen(SEEING, formulas.overview(look))
    if kind != "cross":
        fitted_here("key", now.key, len(look.inside.view.key_tokens))

    def beside(now: State, looks: Looks) -> None:
        follow(looks[kind], now, name)

    explorer(Scene(strips_only("inside", kind), opened, (kind,), beside=beside))
    if name in CHANGED:
        what_if.controls(look, now.what_if)
    frame(opened, kind, name, look)
    following = [*STEPS, None][[*STEPS].index(name) + 1]
    if following is not None:
        label = f"Next step: {STEPS[following].title.lower()}"
        icon = ":material/arrow_forward:"
        st.button(label, key="inside.next", icon=icon, on_click=go_to, args=(following,))


def go_to(name: str) -> None:
    """Opens another step."""
    session.change(section=name)


def frame(opened: View, kind: str, name: str, look: Look) -> None:
    """Words, formulas and export at the left, figures at the right."""
    this = STEPS[name]
    with st.container(key=f"inside-section-{name}"):
        left, right = st.columns([1, 2], gap="medium")
        with left:
            st.markdown(f"##### {labels.count([*STEPS].index(name))} · {this.title}")
            for latex in this.latex(look):
                st.latex(latex)
            slot(f"{name}.text")
            with st.container(horizontal=True, gap="small", key=f"inside-more-{name}"):
                if this.more is not None:
                    this.more(look)
                save(opened, kind, name)
        with right:
            for place in this.slots:
                slot(f"{name}.{place}")


@part
def save(opened: View, kind: str, name: str) -> None:
    """One button for the figures of a step, as they are at the moment when it is opened."""
    with export.popover(f"export.inside-{name}", 260) as is_open:
        if is_open:
            now = session.current()
            look = look_at(looks_of(opened, now)[kind], now)
            drawn = contents(look, now, name)[name].figures.values()
            choice = {each.name: each.exported(look) for place in drawn for each in place}
            export.offer(f"inside-{name}", choice, now)


def look_at(at: HeadSelection, now: State) -> Look:
    """The query at the cursor, and the key under inspection.

    While a question is open, that is the first if none is chosen: the usual one is the one of most weight.
    """
    inside = per_run.inside(at.opened, at.kind, at.head, at.cell[0])
    last, cross = len(inside.view.key_tokens) - 1, at.kind == "cross"
    if session.silent() is not None:
        key = (at.cursor.source if cross else now.key) or 0
    elif cross:
        key = at.cell[1]
    else:
        key = int(np.argmax(inside.view.weights[0])) if now.key is None else min(now.key, last)
    window = window_around(last + 1, key)
    return Look(at.opened, inside, key, *window, notation(now.notation, at.kind))


def contents(look: Look, now: State, name: str) -> dict[str, Contents]:
    """Contents of the step, and of the switches above it, by name."""
    outcome = what_if.outcome(look, now.what_if)
    shown = {name: STEPS[name].contents(look, outcome)}
    if name in CHANGED and (changed := what_if.told(look, now.what_if, outcome)) is not None:
        shown[what_if.WHAT_IF] = changed
    return shown


def follow(at: HeadSelection, now: State, name: str) -> None:
    """Draws the key, which follows the cursor, and fills the slots; what does not move has its own feed."""
    look = look_at(at, now)
    key_picker(look, now)
    moving, fixed = dict[str, Content](), dict[str, Content]()
    for section, each in contents(look, now, name).items():
        moving |= {f"{section}.{place}": text for place, text in each.texts.items()}
        for place, figures in each.figures.items():
            still = all(not figure.step for figure in figures) and bool(figures)
            (fixed if still else moving)[f"{section}.{place}"] = [figure.picture(look) for figure in figures]
    with st.container(key="inside-feeds"):
        feed("inside.moving", moving)
        feed("inside.fixed", fixed)


def key_picker(look: Look, now: State) -> None:
    """The key under inspection; in cross-attention it is the source token of the cursor."""
    tokens, field = look.view.key_tokens, "source" if look.kind == "cross" else "key"
    if look.kind != "cross" and now.key is not None and now.key >= len(tokens):
        inform(f"This row has {len(tokens)} keys; key {len(tokens)} is shown.")
    with st.container(horizontal=True, vertical_alignment="center", key="inside-key"):
        pickers.choose(
            f"key.{look.kind}",
            "Key",
            options.keys(tokens),
            look.key,
            lambda each: session.change(**{field: int(each)}),
            texts=True,
            width=260,
        )
        st.caption(hushed(f"weight {look.view.weights[0, look.key]:.2f}"), width="content")


opened = open_sentence_page("inside_a_head", controls, changes=holds, kinds=("encoder", "cross"))
if opened is not None:
    with_model(opened, show)
